import json
import sys
from tempfile import NamedTemporaryFile

from mrjob.job import MRJob
from mrjob.protocol import JSONProtocol


class Round(MRJob):
    INPUT_PROTOCOL = JSONProtocol

    def mapper(self, page, node):
        rank, links = node
        yield page, (0.15, links)
        for link in links:
            yield link, (0.85 * rank / len(links), [])

    def reducer(self, page, nodes):
        rank, links = 0, []
        for share, more in nodes:
            rank += share
            links += more
        yield page, (rank, links)


def run_round(nodes):
    with NamedTemporaryFile("w") as file:
        for page, node in nodes.items():
            print(json.dumps(page), json.dumps(node), sep="\t", file=file)
        file.flush()
        job = Round([file.name])
        with job.make_runner() as runner:
            runner.run()
            return dict(job.parse_output(runner.cat_output()))


def main():
    with open(sys.argv[1]) as lines:
        pages = [line.split() for line in lines]
    nodes, moved = {page: (1, links) for page, *links in pages}, 1
    while moved >= 1e-6:
        after = run_round(nodes)
        moved = sum(abs(after[page][0] - nodes[page][0]) for page in nodes)
        nodes = after
    for page, (rank, _) in nodes.items():
        print(json.dumps(page), rank, sep="\t")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main()
    else:
        Round.run()
