//! Extreme numbers in workload files: each file ends or is rejected with an explanation.

use napreduce_engine::{Span, Time};
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName, SchedulerTables};
use napreduce_sim::{
    Baseline, Cost, Failures, Simulation, SimulationSettings, SizeModel, SwimTrace, WorkloadFile,
    run_baseline,
};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

const FLOATS: [&str; 14] = [
    "0",
    "-0.0",
    "1",
    "2.5",
    "7",
    "1e-9",
    "-1",
    "1e6",
    "3e8",
    "1e13",
    "9223372036854775807",
    "1e300",
    "nan",
    "inf",
];
const WHOLE: [&str; 9] = [
    "0",
    "1",
    "2",
    "3",
    "10",
    "100000",
    "4294967295",
    "9223372036854775807",
    "-1",
];
const SPANS: [&str; 7] = ["0s", "1us", "3s", "10m", "100000h", "5124095576h", "-1s"];

struct Draw(Pcg64);

impl Draw {
    /// Returns one of these values, usually one of the first.
    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        let last = if self.0.random_range(0..4) > 0 {
            all.len().min(5)
        } else {
            all.len()
        };
        all[self.0.random_range(0..last)]
    }

    fn line(&mut self, key: &str, all: &[&str], quoted: bool) -> String {
        match (self.0.random_range(0..3), quoted) {
            (0, false) => format!("{key} = {}\n", self.of(all)),
            (0, true) => format!("{key} = \"{}\"\n", self.of(all)),
            _ => String::new(),
        }
    }

    fn number(&mut self) -> String {
        let one = self.of(&FLOATS);
        match self.0.random_range(0..8) {
            0 => format!("{{ uniform = [{one}, {}] }}", self.of(&FLOATS)),
            1 => format!("{{ log-uniform = [{one}, {}] }}", self.of(&FLOATS)),
            2 => format!("{{ exponential = {one} }}"),
            3 => format!(
                "{{ log-normal = {{ median = {one}, sigma = {} }} }}",
                self.of(&FLOATS)
            ),
            4 => format!(
                "{{ pareto = {{ minimum = {one}, shape = {} }} }}",
                self.of(&FLOATS)
            ),
            _ => one.to_owned(),
        }
    }

    /// Returns a count, excluding valid ones that take seconds to simulate.
    fn count(&mut self) -> String {
        let few = ["0", "1", "2", "5"];
        let many = ["-1", "2e6", "1e300", "9223372036854775807", "nan", "inf"];
        if self.0.random_range(0..10) > 0 {
            self.of(&few)
        } else {
            self.of(&many)
        }
        .to_owned()
    }

    fn file(&mut self) -> String {
        let mut text = format!(
            "cluster = {{ machines = {}",
            self.of(&["1", "2", "4", "0", "4294967295"])
        );
        text += &match self.0.random_range(0..3) {
            0 => format!(", containers = {}", self.of(&WHOLE)),
            _ => format!(
                ", map-slots = {}, reduce-slots = {}",
                self.of(&WHOLE),
                self.of(&WHOLE)
            ),
        };
        text += " }\n";
        text += &self.line("replicas", &WHOLE, false);
        text += "[overheads]\n";
        for key in [
            "heartbeat",
            "order-latency",
            "launch",
            "master",
            "remote-input",
            "checkpoint-loss",
            "kill",
        ] {
            text += &self.line(key, &SPANS, true);
        }
        text += &self.line("spare-memory", &WHOLE, false);
        for key in ["suspend", "resume", "checkpoint-write", "checkpoint-read"] {
            if self.0.random_range(0..4) == 0 {
                let fixed = self.of(&SPANS);
                let bandwidth = self.of(&WHOLE);
                text += &format!("{key} = {{ fixed = \"{fixed}\", bandwidth = {bandwidth} }}\n");
            }
        }
        if self.0.random_range(0..4) == 0 {
            let ram = self.of(&WHOLE);
            let bandwidth = self.of(&WHOLE);
            let excess = self.of(&WHOLE);
            text += &format!(
                "machine-memory = {{ ram = {ram}, bandwidth = {bandwidth}, excess-permille = {excess} }}\n"
            );
        }
        if self.0.random_range(0..4) == 0 {
            let disk = self.of(&WHOLE);
            let network = self.of(&WHOLE);
            text += &format!("machine-bandwidth = {{ disk = {disk}, network = {network} }}\n");
        }
        for number in 0..self.0.random_range(1..4) {
            text += &format!("[[job]]\nname = \"job{number}\"\n");
            text += &self.line("submit", &SPANS, true);
            text += &self.line("repeat", &["1", "2", "0", "4294967295"], false);
            text += &self.line("priority", &["0", "-2147483648", "2147483647"], false);
            text += &self.line("deadline", &SPANS, true);
            text += &self.line("slowstart", &["0", "1", "0.5", "-1", "1e30"], false);
            text += &self.line("attempts-max", &WHOLE, false);
            text += &self.line("memory", &WHOLE, false);
            let count = self.count();
            let seconds = self.number();
            let bytes = self.number();
            let output = self.number();
            text += &format!(
                "maps = {{ count = {count}, seconds = {seconds}, bytes = {bytes}, output-bytes = {output} }}\n"
            );
            if self.0.random_range(0..2) == 0 {
                let count = self.count();
                let shuffle = self.number();
                let seconds = self.number();
                text += &format!(
                    "reduces = {{ count = {count}, shuffle-seconds = {shuffle}, seconds = {seconds} }}\n"
                );
            }
        }
        text
    }
}

/// Whether a file is accepted and its run ends; rejected files must explain why.
fn run(draw: &mut Draw, text: &str, seed: u64) -> bool {
    let Ok(file) = WorkloadFile::read("numbers", text) else {
        return false;
    };
    let shape = file.cluster.expect("every file has a cluster");
    let names = [
        SchedulerName::Fifo,
        SchedulerName::Fair,
        SchedulerName::Hfsp,
        SchedulerName::Natjam,
    ];
    let scheduler = names[draw.0.random_range(0..names.len())];
    let policy = SchedulerConfiguration {
        scheduler,
        tables: SchedulerTables::default(),
    }
    .build()
    .expect("published values are valid");
    let mut settings = shape.settings(shape.machines);
    settings.overheads = file.overheads;
    settings.seed = seed;
    settings.failures = Failures {
        attempt: [0.0, 0.0, 0.3, 0.999_999][draw.0.random_range(0..4)],
        machine_mean: [None, None, Some(Span(1)), Some(Span(u64::MAX))][draw.0.random_range(0..4)],
        machine_return: Some(
            [Span(0), Span::from_secs(1), Span(u64::MAX)][draw.0.random_range(0..3)],
        ),
    };
    if draw.0.random_range(0..4) == 0 {
        settings.until = Some(Time([0, 1, u64::MAX][draw.0.random_range(0..3)]));
    }
    run_baseline(
        file.workload(seed),
        &settings,
        [Baseline::Ps, Baseline::Srpt, Baseline::Sjf][draw.0.random_range(0..3)],
    );
    match Simulation::new(policy, settings, file.workload(seed)).run() {
        Ok(_) => true,
        Err(error) => {
            assert!(error.to_string().len() > 20, "{error}");
            false
        }
    }
}

#[test]
fn extreme_numbers_end_or_are_rejected() {
    let seeds = 500;
    let mut ended = 0;
    for seed in 0..seeds {
        let mut draw = Draw(Pcg64::seed_from_u64(seed));
        let text = draw.file();
        let done =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&mut draw, &text, seed)));
        if done.unwrap_or_else(|_| panic!("seed {seed}:\n{text}")) {
            ended += 1;
        }
    }
    assert!(
        ended * 100 > seeds,
        "only {ended} of {seeds} files were simulated to their end"
    );
}

#[test]
fn oversized_traces_are_rejected() {
    let trace =
        |line: &str| SwimTrace::read("day.tsv", line.as_bytes()).expect("the trace is valid");
    let model = SizeModel::default();
    let check = |line: &str| model.check(&trace(line)).map_err(|error| error.to_string());
    assert_eq!(check("a\t1\t1\t3000\t1\t0\n"), Ok(()));
    let refused =
        check("a\t1\t1\t18446744073709551615\t0\t0\n").expect_err("the trace has 2^37 maps");
    assert!(
        refused.starts_with("job \"a\": too many map tasks: 137438953472 (limit 1000000)"),
        "{refused}"
    );
    let refused = check("a\t1\t1\t1\t18446744073709551615\t18446744073709551615\n")
        .expect_err("the trace has too many reduces");
    assert!(refused.contains("reduce tasks"), "{refused}");
    // Its submit time is beyond the limit of the clock.
    let late = trace("a\t18446744073709551615\t1\t1\t0\t0\n");
    let settings = SimulationSettings::new(2, napreduce_engine::Slots { map: 1, reduce: 1 });
    let policy = SchedulerConfiguration::default().build().expect("fifo");
    let error = Simulation::new(policy, settings, late.workload(model))
        .run()
        .expect_err("the submit time is too late");
    assert!(
        error.is_input_error() && error.to_string().contains("beyond the maximum time"),
        "{error}"
    );
}

#[test]
fn oversized_clusters_are_rejected() {
    let check = |machines, slots: u32| {
        let slots = napreduce_engine::Slots {
            map: slots,
            reduce: slots,
        };
        SimulationSettings::new(machines, slots)
            .check()
            .map_err(|error| error.to_string())
    };
    assert_eq!(check(100_000, 50), Ok(()));
    assert_eq!(
        check(u32::MAX, 1),
        Err("too many machines: 4294967295 (limit 100000)".to_owned())
    );
    assert!(
        check(2, u32::MAX)
            .expect_err("too many slots")
            .contains("(limit 10000000)")
    );
    assert_eq!(
        Cost {
            fixed: Span(u64::MAX),
            bandwidth: Some(0)
        }
        .of(u64::MAX),
        Span(u64::MAX)
    );
}
