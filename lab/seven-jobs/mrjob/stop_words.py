from mrjob.job import MRJob


class StopWords(MRJob):
    """Counts words that are not in a list."""

    def configure_args(self):
        super().configure_args()
        self.add_file_arg("--stop-words")

    def mapper_init(self):
        with open(self.options.stop_words) as words:
            self.stop = set(words.read().split())

    def mapper(self, _, line):
        for word in line.split():
            if word not in self.stop:
                yield word, 1

    def combiner(self, word, counts):
        yield word, sum(counts)

    def reducer(self, word, counts):
        yield word, sum(counts)


if __name__ == "__main__":
    StopWords.run()
