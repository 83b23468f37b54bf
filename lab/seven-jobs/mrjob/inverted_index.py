from mrjob.job import MRJob


class InvertedIndex(MRJob):
    """The places of each word, as PATH:LINE."""

    def mapper_raw(self, path, uri):
        with open(path) as lines:
            for number, line in enumerate(lines, 1):
                for word in line.split():
                    yield word, (uri, number)

    def reducer(self, word, places):
        yield word, " ".join(f"{uri}:{number}" for uri, number in sorted(places))


if __name__ == "__main__":
    InvertedIndex.run()
