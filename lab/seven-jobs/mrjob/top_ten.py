import heapq

from mrjob.job import MRJob
from mrjob.step import MRStep


class TopTen(MRJob):
    """The words that are at least as frequent as the tenth."""

    def steps(self):
        return [
            MRStep(mapper=self.words, combiner=self.count, reducer=self.count),
            MRStep(mapper=self.to_one_reducer, reducer=self.top),
        ]

    def words(self, _, line):
        for word in line.split():
            yield word, 1

    def count(self, word, counts):
        yield word, sum(counts)

    def to_one_reducer(self, word, count):
        yield None, (count, word)

    def top(self, _, counts):
        counts = list(counts)
        tenth = heapq.nlargest(10, counts)[-1]
        for count, word in counts:
            if count >= tenth[0]:
                yield word, count


if __name__ == "__main__":
    TopTen.run()
