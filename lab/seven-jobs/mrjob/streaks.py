from mrjob.job import MRJob


class Streaks(MRJob):
    """The longest run of consecutive days of each user, from lines USER DAY."""

    def mapper(self, _, line):
        user, day = line.split(" ")
        yield user, int(day)

    def reducer(self, user, days):
        last, streak, longest = None, 0, 0
        for day in sorted(set(days)):
            streak = streak + 1 if last == day - 1 else 1
            longest = max(longest, streak)
            last = day
        yield user, longest


if __name__ == "__main__":
    Streaks.run()
