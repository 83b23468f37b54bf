import csv

from mrjob.compat import jobconf_from_env
from mrjob.job import MRJob


class Join(MRJob):
    """The name of the user of each order, and its amount."""

    def mapper(self, _, line):
        first, second = next(csv.reader([line]))
        if not first.isdigit():
            return
        if jobconf_from_env("mapreduce.map.input.file").endswith("users.csv"):
            yield first, ("name", second)
        else:
            yield first, ("order", int(second))

    def reducer(self, _, rows):
        names, amounts = [], []
        for table, field in rows:
            (names if table == "name" else amounts).append(field)
        for name in names:
            for amount in amounts:
                yield name, amount


if __name__ == "__main__":
    Join.run()
