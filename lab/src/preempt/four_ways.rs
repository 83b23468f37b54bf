//! Owns Natjam's experiment of several ways to give a production job its share: a research job fills the
//! cluster, then a production job comes that wants a quarter of it (Natjam, section 6: Research-XL and
//! Production-S). Jobs consist of reduces that sleep between their groups, as there; all times are scaled to
//! what a person waits for.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use napreduce_engine::{Slots, listed};
use napreduce_live::{JobDetail, JobSummary, PreemptionEnd};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::Serialize;

use super::Setting;
use super::report::PreemptReport;
use crate::error::LabError;
use crate::guard::Guard;
use crate::jobs::Work;
use crate::live_cluster::{JobOrder, Layout, LiveCluster};
use crate::outputs::OutputDigest;
use crate::raw::RawFile;
use crate::workspace::write;

/// Reduce slots of the cluster, on so many workers.
const SLOTS: u32 = 12;
const WORKERS: u32 = 2;
/// The production job wants so many of them.
const PRODUCTION_SLOTS: u32 = 3;
/// What the paper's jobs take alone, and when the second one comes.
const RESEARCH_SECONDS: f64 = 192.3;
const PRODUCTION_SECONDS: f64 = 70.4;
const PRODUCTION_AT_SECONDS: f64 = 50.0;
/// How long a reduce sleeps for one group: short, since progress is told each time about a thousand groups
/// are done.
const PAUSE: Duration = Duration::from_millis(1);
/// Lengths of reduces are drawn from here on, up to the longest.
const SHORTEST: f64 = 0.5;
const SEED: u64 = 0x006e_6174_6a61_6d00;
const HEARTBEAT: Duration = Duration::from_millis(100);
const LIMIT: Duration = Duration::from_secs(3_600);

listed! {
    /// A way to divide the cluster.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Way {
        /// Each job has the cluster for itself.
        Ideal = "ideal",
        /// Research never gets more than its share.
        HardCap = "hard-cap",
        /// Production waits until research tasks end.
        SoftCap = "soft-cap",
        /// Research tasks are killed.
        Kill = "kill",
        Checkpoint = "checkpoint",
        Suspend = "suspend",
    }
}

impl Way {
    fn end(self) -> Option<PreemptionEnd> {
        match self {
            Way::Ideal | Way::HardCap | Way::SoftCap => None,
            Way::Kill => Some(PreemptionEnd::Killed),
            Way::Checkpoint => Some(PreemptionEnd::Checkpointed),
            Way::Suspend => Some(PreemptionEnd::Suspended),
        }
    }

    /// The configuration of a cluster that works this way; times of the scheduler shrink with the jobs'.
    fn configuration(self, scale: f64) -> String {
        let capacity = |mode: &str| {
            format!(
                "[coordinator]\nscheduler = \"capacity\"\nspeculation = false\n\n[scheduler.capacity]\nmode = \"{mode}\"\n\
                 default-queue = \"research\"\n\n[[scheduler.capacity.queue]]\nname = \"research\"\n\
                 guaranteed-percent = 75\n\n[[scheduler.capacity.queue]]\nname = \"production\"\n\
                 guaranteed-percent = 25\n"
            )
        };
        match self {
            Way::Ideal => "[coordinator]\nscheduler = \"fifo\"\nspeculation = false\n\
                           queues = [\"production\", \"research\"]\n"
                .to_owned(),
            Way::HardCap => capacity("hard-cap"),
            Way::SoftCap => capacity("soft-cap"),
            // What is taken is all the production job wants, in every way: no worker is full.
            Way::Kill | Way::Checkpoint | Way::Suspend => format!(
                "[coordinator]\nscheduler = \"natjam\"\nspeculation = false\n\n[preemption]\n\
                 suspended-max = \"unlimited\"\n\n[scheduler.natjam]\nprimitive = \"{}\"\n\
                 preemptor-interval = \"{}us\"\n",
                self,
                (scale * 1e6).round().max(10_000.0) as u64
            ),
        }
    }
}

read_by_word!(Way: "there is no way");

/// Both jobs, one way, once.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WayRun {
    /// Always `four-ways`.
    pub experiment: &'static str,
    pub way: Way,
    /// From 1.
    pub repetition: u32,
    /// Seconds of the production job from submission to end.
    pub production_seconds: f64,
    /// The same of the research job.
    pub research_seconds: f64,
    /// How often research gave up a slot as this way means it to.
    pub preempted: usize,
    /// How often it was asked to and something else happened: it was done first, or there was a fallback.
    pub otherwise: usize,
    /// Whether both outputs are those of undisturbed runs.
    pub identical: bool,
}

listed! {
    /// The two jobs of the experiment.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Role {
        Research = "research",
        Production = "production",
    }
}

impl Role {
    fn reduces(self) -> u32 {
        match self {
            Role::Research => SLOTS,
            Role::Production => PRODUCTION_SLOTS,
        }
    }

    /// The input: a line for each reduce, with as many groups as its length takes. The longest comes first,
    /// so that the job takes what it should alone.
    fn input(self, scale: f64) -> String {
        let seconds = match self {
            Role::Research => RESEARCH_SECONDS,
            Role::Production => PRODUCTION_SECONDS,
        };
        let longest = seconds * scale / PAUSE.as_secs_f64();
        let mut random = Pcg64Mcg::seed_from_u64(SEED + u64::from(self.reduces()));
        let lengths = (0..self.reduces()).map(|reduce| match reduce {
            0 => 1.0,
            _ => random.random_range(SHORTEST..=1.0),
        });
        let groups = lengths.map(|length| (longest * length).round().max(1.0) as u64);
        groups.zip(0..).map(|(groups, reduce): (u64, u32)| format!("{reduce} {groups}\n")).collect()
    }
}

/// Runs all ways, in turn within each repetition.
pub fn run(
    setting: &Setting<'_>,
    guard: &mut Guard,
    raw: &mut RawFile,
    report: &mut PreemptReport,
) -> Result<(), LabError> {
    let settings = setting.settings;
    let folder = setting.work.fresh("four-ways")?;
    for role in Role::ALL {
        write(&folder.join(format!("{role}.txt")), role.input(settings.scale))?;
    }
    let mut experiment = FourWays { setting, folder, references: [None, None] };
    // The first run of each is what the others are compared with, whether or not the ideal is asked for.
    let mut ways = settings.ways.clone();
    ways.sort();
    for repetition in 1..=settings.repetitions {
        for way in &ways {
            let run = experiment.once(*way, repetition, guard)?;
            setting.session.say(format!(
                "{way} {repetition}/{}: production {:.2} s, research {:.2} s, {}",
                settings.repetitions,
                run.production_seconds,
                run.research_seconds,
                if run.identical { "outputs right" } else { "OUTPUT DIFFERS" },
            ));
            raw.add(&run)?;
            report.way_runs.push(run);
        }
    }
    Ok(())
}

/// Seconds of a job from its submission to its end.
pub fn seconds(detail: &JobDetail) -> f64 {
    let JobSummary { submitted_millis, ended_millis, .. } = detail.summary;
    ended_millis.unwrap_or(submitted_millis).saturating_sub(submitted_millis) as f64 / 1e3
}

struct FourWays<'a> {
    setting: &'a Setting<'a>,
    folder: PathBuf,
    /// What undisturbed jobs write, by role.
    references: [Option<OutputDigest>; 2],
}

impl FourWays<'_> {
    fn once(&mut self, way: Way, repetition: u32, guard: &mut Guard) -> Result<WayRun, LabError> {
        let settings = self.setting.settings;
        let folder = self.setting.work.fresh("four-ways/run")?;
        let each = Slots { map: 1, reduce: SLOTS / WORKERS };
        let layout = Layout {
            workers: vec![each; WORKERS as usize],
            heartbeat: HEARTBEAT,
            configuration: way.configuration(settings.scale),
            confinement: None,
        };
        let session = self.setting.session;
        let mut cluster = LiveCluster::start(&folder, &self.setting.nap, &layout, guard, session)?;
        // The program is sent before anything is measured.
        let small = JobOrder { reduces: 1, ..self.order(&folder, "warm-up", Role::Production, 0) };
        let warm_up = cluster.submit(&small)?;
        cluster.wait(warm_up, LIMIT)?;
        if self.references.iter().any(Option::is_none) {
            self.refer(&mut cluster, &folder)?;
        }
        let research = cluster.submit(&self.order(&folder, "research", Role::Research, PAUSE.as_micros()))?;
        if way == Way::Ideal {
            cluster.wait(research, LIMIT)?;
        } else {
            self.pass_time(Duration::from_secs_f64(PRODUCTION_AT_SECONDS * settings.scale))?;
        }
        let order = self.order(&folder, "production", Role::Production, PAUSE.as_micros());
        let production = cluster.submit(&order)?;
        let production = cluster.wait(production, LIMIT)?;
        let research = cluster.wait(research, LIMIT)?;
        cluster.stop_and_keep(&self.setting.recordings.join(format!("{way}.{repetition}")))?;
        let digests =
            [OutputDigest::read(&folder.join("research"))?, OutputDigest::read(&folder.join("production"))?];
        let identical = self.references == digests.map(Some);
        Ok(WayRun {
            experiment: "four-ways",
            way,
            repetition,
            production_seconds: seconds(&production),
            research_seconds: seconds(&research),
            preempted: research.preemptions.iter().filter(|one| one.end == way.end()).count(),
            otherwise: research.preemptions.iter().filter(|one| one.end != way.end()).count(),
            identical,
        })
    }

    /// Runs both jobs without anybody in their way, and without the sleep that their outputs do not depend
    /// on.
    fn refer(&mut self, cluster: &mut LiveCluster<'_>, folder: &Path) -> Result<(), LabError> {
        for (place, role) in Role::ALL.into_iter().enumerate() {
            let name = format!("{role}-alone");
            let job = cluster.submit(&self.order(folder, &name, role, 0))?;
            cluster.wait(job, LIMIT)?;
            self.references[place] = Some(OutputDigest::read(&folder.join(&name))?);
        }
        Ok(())
    }

    fn order(&self, folder: &Path, name: &str, role: Role, pause_micros: u128) -> JobOrder {
        let pause = u64::try_from(pause_micros).unwrap_or(u64::MAX);
        let work = Work { job: "steps-of-reduces".to_owned(), rounds: 0, pause, fill: 0, seed: 0 };
        let input = self.folder.join(format!("{role}.txt"));
        JobOrder {
            reduces: role.reduces(),
            queue: Some(role.to_string()),
            ..JobOrder::new(name, work, &input, &folder.join(name))
        }
    }

    /// Waits, and stops waiting on an interrupt.
    fn pass_time(&self, time: Duration) -> Result<(), LabError> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.setting.session.interrupt.check()?;
            thread::sleep(Duration::from_millis(5).min(until.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jobs_are_the_papers_at_scale() {
        let groups = |role: Role, scale| -> Vec<f64> {
            let text = role.input(scale);
            text.lines().map(|line| line.split_once(' ').unwrap().1.parse().unwrap()).collect()
        };
        let research = groups(Role::Research, 0.1);
        assert_eq!(research.len(), 12);
        assert_eq!(research[0], 19_230.0, "19.23 s of 1 ms each");
        assert!(research.iter().all(|groups| (9_615.0..=19_230.0).contains(groups)), "{research:?}");
        assert_eq!(groups(Role::Production, 0.1).len(), 3);
        assert_eq!(groups(Role::Production, 0.1)[0], 7_040.0);
    }

    #[test]
    fn ways_are_words() {
        assert_eq!("soft-cap".parse(), Ok(Way::SoftCap));
        assert!("cap".parse::<Way>().unwrap_err().to_string().contains("ideal, hard-cap, soft-cap"));
        assert!(
            Way::Suspend
                .configuration(0.1)
                .contains("primitive = \"suspend\"\npreemptor-interval = \"100000us\"")
        );
    }
}
