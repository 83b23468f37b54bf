//! The plan of a run: everything that is drawn before it begins, as parts with names. Each part has random numbers of
//! its own, so that a run without some of its parts keeps the others as they were.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use napreduce_cluster::FsyncPolicy;
use napreduce_engine::{PreemptionSettings, Slots, Span, SpeculationSettings};
use napreduce_local::world::disk::FaultRates;
use napreduce_local::world::{NetFault, SplitMix};
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName};

use crate::chance::Chance;

/// The most by which a wall clock jumps, in microseconds: two hours.
const JUMP_MICROS: u64 = 2 * 3600 * 1_000_000;
/// The most calls to the coordinator's disk until it loses its power. Some hundred are made for one job.
const CALLS_MAX: u64 = 300;
/// The default interval at which the journal is synced.
const FSYNC_INTERVAL: Duration = Duration::from_millis(100);
/// The longest time with faults. Most runs are short, so that there can be many.
const FAULTS_MILLIS_MAX: [u64; 8] = [
    30_000, 30_000, 30_000, 30_000, 30_000, 30_000, 60_000, 300_000,
];
/// Intervals of heartbeats. The default, which is the shortest one, takes most of the time of a run.
const HEARTBEATS_MILLIS: [u64; 5] = [1_000, 1_000, 1_000, 1_000, 200];
/// The longest times of syncs of the coordinator's disk. What arrives meanwhile waits.
const SYNCS_MILLIS: [u64; 4] = [0, 0, 10, 100];
/// Duplicates of stragglers start early, since tasks are short.
const EAGER_SPECULATION: SpeculationSettings = SpeculationSettings {
    minimum: Span::from_millis(200),
    finished_min: 1,
    slowdown_permille: 100,
    period: Span::from_millis(200),
};
/// The moments at which something may be done.
const MOMENTS: [Moment; 17] = [
    Moment::Submission,
    Moment::Submission,
    Moment::Launch,
    Moment::Suspend,
    Moment::Resume,
    Moment::Checkpoint,
    Moment::Kill,
    Moment::Grant,
    Moment::Grant,
    Moment::CommitRequest,
    Moment::Suspended,
    Moment::End,
    Moment::End,
    Moment::StorageFailure,
    Moment::Ending,
    Moment::Ending,
    Moment::Ending,
];
/// The number of processes among 1000 that fail on the storage of outputs if something is to be done then.
const STORAGE_FAULTS_PERMILLE: u32 = 300;
/// The longest times between a moment and what is done then. Messages take up to 3 ms.
const REACTION_MILLIS_MAX: [u64; 4] = [1, 10, 50, 500];
/// The longest pause between two commands of a series.
const COMMAND_PAUSES_MILLIS_MAX: [u64; 3] = [20, 200, 2_000];
/// The number of runs among 1000 in which storage is slow just when it is needed.
const SLOW_STORAGE_PERMILLE: u32 = 400;
/// The number of runs among 1000 in which the coordinator's host loses its power while it changes an output directory.
const OUTPUT_POWER_LOSS_PERMILLE: u32 = 250;
/// The most calls to output directories until then. A claim needs some twenty, a commit twenty and four for each part.
const OUTPUT_CALLS_MAX: u64 = 60;
/// The longest times that a look at slow storage takes.
const SLOW_MILLIS_MAX: [u64; 3] = [500, 3_000, 10_000];
/// The name of the coordinator's host.
pub const COORDINATOR: &str = "coordinator";
/// The part whose absence leaves all processes of tasks without faults.
const TASK_FAULTS: &str = "task-faults";

/// What goes wrong beside the tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturbance {
    Nothing,
    /// The coordinator's host loses its power, and its disk fails.
    Coordinator,
    Network,
    Hosts,
    NetworkAndHosts,
}

impl Disturbance {
    fn hits_network(self) -> bool {
        matches!(self, Disturbance::Network | Disturbance::NetworkAndHosts)
    }

    /// Returns whether it may hit any host.
    fn hits_hosts(self) -> bool {
        matches!(self, Disturbance::Hosts | Disturbance::NetworkAndHosts)
    }

    fn hits_coordinator(self) -> bool {
        self.hits_hosts() || self == Disturbance::Coordinator
    }
}

/// The plan of a run.
#[derive(Debug, Clone)]
pub struct Plan {
    pub seed: u64,
    pub scheduler: Arc<SchedulerConfiguration>,
    pub preemption: PreemptionSettings,
    /// Queues that jobs name under policies without queues.
    pub queues: Vec<String>,
    pub speed: Speed,
    /// Bytes of the journal after which the coordinator writes a snapshot.
    pub journal_bytes_max: u64,
    /// When stragglers get duplicates.
    pub speculation: Option<SpeculationSettings>,
    pub fsync: FsyncPolicy,
    /// The longest time that the coordinator's disk needs for a sync.
    pub sync: Duration,
    /// The interval of heartbeats.
    pub heartbeat: Duration,
    /// When the faults stop.
    pub until: Duration,
    /// The number of processes among 1000 that have a fault.
    pub task_faults_permille: u32,
    /// The number of further processes among 1000 that fail on the storage of outputs.
    pub storage_faults_permille: u32,
    pub workers: Vec<PlannedWorker>,
    pub jobs: Vec<PlannedJob>,
    pub commands: Vec<PlannedCommand>,
    pub faults: Vec<PlannedFault>,
    pub reactions: Vec<PlannedReaction>,
}

/// How fast processes and blocking calls of daemons are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speed {
    /// Some are slow, as drawn.
    Drawn,
    /// All are as fast as possible, and alike.
    Even,
}

/// A worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedWorker {
    pub number: u32,
    pub slots: Slots,
}

impl PlannedWorker {
    /// Returns the name of its host.
    pub fn name(&self) -> String {
        format!("worker-{}", self.number)
    }
}

/// A job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedJob {
    pub number: u32,
    /// The number of its output directory, which other jobs may want, too.
    pub output: u32,
    /// Whether it replaces what another job has left there.
    pub overwrites: bool,
    /// The job itself; it is drawn from the seed if `None`.
    pub given: Option<GivenJob>,
}

/// A job that is not drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenJob {
    pub name: String,
    pub queue: String,
    pub user: String,
    pub priority: i32,
    pub deadline: Option<Duration>,
    /// When it is submitted, since the run began.
    pub submitted: Duration,
    /// Tenths of a second for which each map works.
    pub maps: Vec<u32>,
    /// Tenths of a second for which each reduce works.
    pub reduces: Vec<u32>,
}

/// A command of the operator, at the earliest at this time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedCommand {
    pub number: u32,
    pub at: Duration,
    pub command: Command,
}

/// What the operator does, with an attempt or a job that is drawn then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    SuspendAttempt,
    CheckpointAttempt,
    KillAttempt,
    /// Kills the other attempts of the task.
    KillRivals,
    ResumeAttempt,
    SuspendJob,
    HoldJob,
    ResumeJob,
    KillJob,
}

/// Something that is done at a certain moment of the protocol, rather than at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedReaction {
    pub number: u32,
    /// It is done at the `count`th such moment.
    pub moment: Moment,
    pub count: u32,
    /// How long after the moment.
    pub after: Duration,
    pub reaction: Reaction,
}

/// A moment of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// A client begins to submit its job.
    Submission,
    /// An order to start an attempt is sent.
    Launch,
    Suspend,
    Resume,
    Checkpoint,
    Kill,
    /// A grant of a commit is sent.
    Grant,
    /// A worker reports that an attempt wants to commit.
    CommitRequest,
    /// A worker reports that an attempt is suspended.
    Suspended,
    /// A worker reports that an attempt has ended.
    End,
    /// A worker reports that an attempt failed on storage that all share.
    StorageFailure,
    /// The last task of a job has ended.
    Ending,
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// The operator gives a command to the attempt or the job.
    Command(Command),
    /// The connections between the coordinator and the worker or the client suffer.
    Break(Breakage),
    /// Something happens to the coordinator's host.
    Coordinator(HostFault),
    /// The coordinator's host loses its power in the call to its disk after so many others.
    PowerLoss { calls: u64 },
    /// It does so in the call to an output directory after so many others.
    OutputPowerLoss { calls: u64 },
    /// Something happens to the worker's host.
    Worker(HostFault),
    /// The worker's daemon gets SIGTERM, and the coordinator hears nothing of it for this time.
    LeaveUnheard(Duration),
}

/// What happens to connections with the coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breakage {
    /// They break at both ends.
    Reset,
    /// They break at the peer's end.
    ResetPeer,
    /// They break at the coordinator's end.
    ResetCoordinator,
    /// Nothing arrives any more, and nobody is told.
    Sever,
    /// Nothing arrives at the coordinator for this time, after which the peer's end breaks.
    BlockTo(Duration),
    /// Nothing arrives at the peer for this time, after which the peer's end breaks.
    BlockFrom(Duration),
    /// The peer's end breaks; what it has sent arrives after so long, perhaps after what it sends over a new connection.
    Overtake(Duration),
}

/// A fault.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedFault {
    pub number: u32,
    pub at: Duration,
    pub fault: Fault,
}

/// What goes wrong.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    Network(NetFault),
    /// A fault of the host of this name.
    Host(String, HostFault),
    /// A fault of the coordinator's disk.
    Disk(DiskFault),
}

/// Something that happens to the coordinator's disk.
#[derive(Debug, Clone, PartialEq)]
pub enum DiskFault {
    /// Its host loses its power in the call after so many others.
    PowerLoss { calls: u64 },
    /// So many bytes are free.
    Full { free: u64, lasting: Duration },
    /// Calls fail, are short, or take long.
    Rates {
        rates: FaultRates,
        lasting: Duration,
    },
}

/// Something that happens to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostFault {
    /// It loses its power, and has it again after this time.
    Crash(Duration),
    /// Nothing on it runs for this time, as on a laptop whose lid is closed.
    Sleep(Duration),
    /// Its wall clock jumps by so many microseconds.
    Jump(i64),
    /// Blocking work that it begins, such as looking at an output directory, takes this long, or down to half of it.
    Slow {
        slowest: Duration,
        lasting: Duration,
    },
    /// Its daemon gets SIGTERM.
    Terminate,
}

/// Returns the address of the coordinator's host.
pub fn coordinator_address() -> IpAddr {
    address(1)
}

/// Returns the address of the host of the worker of this number.
pub fn worker_address(number: u32) -> IpAddr {
    address(10 + number)
}

/// Returns the address of the operator's host.
pub fn operator_address() -> IpAddr {
    address(100)
}

/// Returns the address of the host of the client of this number.
pub fn client_address(number: u32) -> IpAddr {
    address(100 + number)
}

fn address(last: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + last))
}

impl Plan {
    /// Draws the plan of a seed.
    pub fn draw(seed: u64) -> Plan {
        let mut chance = Chance::new(seed, "plan");
        let policies = SchedulerName::ALL;
        let policy = *chance.pick(&policies).unwrap_or(&SchedulerName::Fifo);
        let journal_sizes = [4 << 10, 64 << 10, 64 << 20];
        let journal_bytes_max = *chance.pick(&journal_sizes).unwrap_or(&(64 << 20));
        let choices = [FsyncPolicy::Always, FsyncPolicy::Interval(FSYNC_INTERVAL)];
        let speculation = chance.happens(600).then_some(EAGER_SPECULATION);
        let fsync = *chance.pick(&choices).unwrap_or(&FsyncPolicy::Always);
        let sync = *chance.pick(&SYNCS_MILLIS).unwrap_or(&0);
        let heartbeat = *chance.pick(&HEARTBEATS_MILLIS).unwrap_or(&1_000);
        let longest = *chance.pick(&FAULTS_MILLIS_MAX).unwrap_or(&30_000);
        let until = chance.millis(10_000, longest);
        let task_faults_permille = *chance.pick(&[0, 50, 200, 500]).unwrap_or(&0);
        let disturbances = [
            Disturbance::Nothing,
            Disturbance::Coordinator,
            Disturbance::Network,
            Disturbance::Hosts,
            Disturbance::NetworkAndHosts,
        ];
        let disturbance = *chance.pick(&disturbances).unwrap_or(&Disturbance::Nothing);
        let mut workers = Vec::new();
        for number in 1..=chance.count(1, 4) {
            let slots = Slots {
                map: chance.count(1, 3),
                reduce: chance.count(1, 3),
            };
            workers.push(PlannedWorker { number, slots });
        }
        let mut jobs = Vec::new();
        for number in 1..=chance.count(1, 4) {
            let output = if chance.happens(250) {
                chance.count(1, number)
            } else {
                number
            };
            jobs.push(PlannedJob {
                number,
                output,
                overwrites: chance.happens(500),
                given: None,
            });
        }
        let mut plan = Plan {
            seed,
            scheduler: Arc::new(SchedulerConfiguration::named(policy)),
            preemption: PreemptionSettings::default(),
            queues: Vec::new(),
            speed: Speed::Drawn,
            journal_bytes_max,
            speculation,
            fsync,
            sync: Duration::from_millis(sync),
            heartbeat: Duration::from_millis(heartbeat),
            until,
            task_faults_permille,
            storage_faults_permille: 0,
            workers,
            jobs,
            commands: Vec::new(),
            faults: Vec::new(),
            reactions: Vec::new(),
        };
        plan.draw_commands();
        plan.draw_faults(disturbance);
        plan.draw_reactions(disturbance);
        plan.draw_slow_storage(disturbance);
        plan.draw_output_power_losses(disturbance);
        plan
    }

    /// Returns a plan in which nothing goes wrong: these jobs on this many workers with these slots each.
    pub fn undisturbed(
        scheduler: SchedulerConfiguration,
        preemption: PreemptionSettings,
        workers: u32,
        slots: Slots,
        jobs: Vec<GivenJob>,
    ) -> Plan {
        let mut plan = Plan {
            seed: 0,
            scheduler: Arc::new(scheduler),
            preemption,
            queues: jobs.iter().map(|job| job.queue.clone()).collect(),
            speed: Speed::Even,
            journal_bytes_max: 64 << 20,
            speculation: None,
            fsync: FsyncPolicy::Interval(FSYNC_INTERVAL),
            sync: Duration::ZERO,
            heartbeat: Duration::from_secs(1),
            until: Duration::ZERO,
            task_faults_permille: 0,
            storage_faults_permille: 0,
            workers: Vec::new(),
            jobs: Vec::new(),
            commands: Vec::new(),
            faults: Vec::new(),
            reactions: Vec::new(),
        };
        for number in 1..=workers {
            plan.workers.push(PlannedWorker { number, slots });
        }
        for (number, job) in (1..).zip(jobs) {
            plan.jobs.push(PlannedJob {
                number,
                output: number,
                overwrites: false,
                given: Some(job),
            });
        }
        plan
    }

    /// Draws commands in series, at any time while there are faults. Within a series a command often finds the effect of
    /// the one before.
    fn draw_commands(&mut self) {
        let mut chance = Chance::new(self.seed, "operator");
        let mut drawn = Vec::new();
        let until_millis = u64::try_from(self.until.as_millis()).unwrap_or(u64::MAX);
        for _ in 0..*chance.pick(&[0, 4, 16]).unwrap_or(&0) {
            let mut at = chance.millis(0, until_millis);
            let pause_max = *chance.pick(&COMMAND_PAUSES_MILLIS_MAX).unwrap_or(&500);
            for _ in 0..chance.count(1, 6) {
                drawn.push((at, draw_command(&mut chance)));
                at += chance.millis(1, pause_max);
            }
        }
        drawn.sort_by_key(|(at, _)| *at);
        for (number, (at, command)) in (1..).zip(drawn) {
            self.commands.push(PlannedCommand {
                number,
                at,
                command,
            });
        }
    }

    fn draw_faults(&mut self, disturbance: Disturbance) {
        if disturbance == Disturbance::Nothing {
            return;
        }
        let mut chance = Chance::new(self.seed, "faults");
        let mut numbers = SplitMix::new(chance.between(0, u64::MAX));
        let addresses = self.addresses();
        let mut hosts = vec![COORDINATOR.to_owned()];
        for worker in &self.workers {
            hosts.push(worker.name());
        }
        let pause_max = *chance.pick(&[3_000, 15_000, 60_000]).unwrap_or(&15_000);
        let mut at = Duration::ZERO;
        for number in 1.. {
            at += chance.millis(1, pause_max);
            if at >= self.until {
                return;
            }
            let is_of_network = match disturbance {
                Disturbance::Network => true,
                Disturbance::Hosts | Disturbance::Coordinator | Disturbance::Nothing => false,
                Disturbance::NetworkAndHosts => chance.happens(500),
            };
            let fault = if is_of_network {
                Fault::Network(NetFault::draw(&mut numbers, &addresses))
            } else if disturbance == Disturbance::Coordinator || chance.happens(250) {
                draw_coordinator_fault(&mut chance)
            } else {
                let host = chance.pick(&hosts).cloned().unwrap_or_default();
                Fault::Host(host, draw_host_fault(&mut chance))
            };
            self.faults.push(PlannedFault { number, at, fault });
        }
    }

    /// Draws what is done at certain moments.
    fn draw_reactions(&mut self, disturbance: Disturbance) {
        let mut chance = Chance::new(self.seed, "reactions");
        for number in 1..=*chance.pick(&[0, 4, 16]).unwrap_or(&0) {
            let moment = *chance.pick(&MOMENTS).unwrap_or(&Moment::Launch);
            let reaction = draw_reaction(&mut chance, moment, disturbance);
            let count_max = match moment {
                Moment::Submission | Moment::Ending | Moment::StorageFailure => 3,
                Moment::Suspend | Moment::Resume | Moment::Checkpoint | Moment::Kill => 5,
                _ => 15,
            };
            let after_max = *chance.pick(&REACTION_MILLIS_MAX).unwrap_or(&20);
            let planned = PlannedReaction {
                number,
                moment,
                count: chance.count(1, count_max),
                after: chance.millis(0, after_max),
                reaction,
            };
            self.reactions.push(planned);
            if moment == Moment::StorageFailure {
                self.storage_faults_permille = STORAGE_FAULTS_PERMILLE;
            }
        }
    }

    /// Draws what happens while the coordinator waits for storage: it looks whether a task failed because of storage, or settles
    /// the output of a job.
    fn draw_slow_storage(&mut self, disturbance: Disturbance) {
        let mut chance = Chance::new(self.seed, "slow storage");
        if !chance.happens(SLOW_STORAGE_PERMILLE) {
            return;
        }
        let hits_network = disturbance.hits_network();
        let hits_coordinator = disturbance.hits_coordinator();
        if !hits_network && !hits_coordinator {
            return;
        }
        for _ in 0..2 {
            let moments = [Moment::StorageFailure, Moment::Ending];
            let moment = *chance.pick(&moments).unwrap_or(&Moment::Ending);
            let slowest_max = *chance.pick(&SLOW_MILLIS_MAX).unwrap_or(&500);
            let slow = HostFault::Slow {
                slowest: chance.millis(300, slowest_max),
                lasting: chance.millis(100, slowest_max),
            };
            let mut choices = Vec::new();
            if hits_network && moment == Moment::StorageFailure {
                choices.push(Reaction::Break(Breakage::ResetPeer));
                choices.push(Reaction::Break(draw_breakage(&mut chance)));
            }
            if hits_coordinator {
                let crash = HostFault::Crash(draw_duration(&mut chance));
                choices.push(Reaction::Coordinator(crash));
                choices.push(Reaction::Coordinator(HostFault::Terminate));
            }
            let Some(meanwhile) = chance.pick(&choices).copied() else {
                continue;
            };
            if moment == Moment::StorageFailure {
                self.storage_faults_permille = STORAGE_FAULTS_PERMILLE;
            }
            let count = chance.count(1, 3);
            let after = chance.millis(3, slowest_max / 8);
            self.react(moment, count, Duration::ZERO, Reaction::Coordinator(slow));
            self.react(moment, count, after, meanwhile);
        }
    }

    /// Draws power losses of the coordinator's host in the middle of a claim of an output directory, a commit or a removal.
    fn draw_output_power_losses(&mut self, disturbance: Disturbance) {
        let mut chance = Chance::new(self.seed, "output power losses");
        if !disturbance.hits_coordinator() || !chance.happens(OUTPUT_POWER_LOSS_PERMILLE) {
            return;
        }
        for _ in 0..chance.count(1, 4) {
            let moments = [Moment::Submission, Moment::Ending, Moment::Ending];
            let moment = *chance.pick(&moments).unwrap_or(&Moment::Ending);
            let count = chance.count(1, 3);
            let calls = chance.between(0, OUTPUT_CALLS_MAX);
            let reaction = Reaction::OutputPowerLoss { calls };
            self.react(moment, count, Duration::ZERO, reaction);
        }
    }

    /// Adds a reaction.
    fn react(&mut self, moment: Moment, count: u32, after: Duration, reaction: Reaction) {
        let last = self.reactions.last().map_or(0, |planned| planned.number);
        self.reactions.push(PlannedReaction {
            number: last + 1,
            moment,
            count,
            after,
            reaction,
        });
    }

    /// Returns whether hosts other than the coordinator's may be cut off.
    pub fn divides(&self) -> bool {
        let by_fault = self.faults.iter().any(|planned| match &planned.fault {
            Fault::Network(_) => true,
            Fault::Host(name, _) => name != COORDINATOR,
            Fault::Disk(_) => false,
        });
        let by_reaction = self.reactions.iter().any(|planned| {
            matches!(
                planned.reaction,
                Reaction::Break(_) | Reaction::Worker(_) | Reaction::LeaveUnheard(_)
            )
        });
        by_fault || by_reaction
    }

    /// Returns whether calls to the coordinator's disk may fail.
    pub fn fails_disk(&self) -> bool {
        let by_fault = self
            .faults
            .iter()
            .any(|planned| matches!(planned.fault, Fault::Disk(_)));
        let by_reaction = self
            .reactions
            .iter()
            .any(|planned| matches!(planned.reaction, Reaction::PowerLoss { .. }));
        by_fault || by_reaction
    }

    /// Returns the addresses of all hosts, with those of clients.
    fn addresses(&self) -> Vec<IpAddr> {
        let mut addresses = vec![coordinator_address()];
        for worker in &self.workers {
            addresses.push(worker_address(worker.number));
        }
        for job in &self.jobs {
            addresses.push(client_address(job.number));
        }
        addresses.push(operator_address());
        addresses
    }

    /// Returns the names of the parts that can be left out. One worker is needed.
    pub fn parts(&self) -> Vec<String> {
        let mut parts = Vec::new();
        for fault in &self.faults {
            parts.push(format!("fault-{}", fault.number));
        }
        for command in &self.commands {
            parts.push(format!("command-{}", command.number));
        }
        for reaction in &self.reactions {
            parts.push(format!("reaction-{}", reaction.number));
        }
        for job in &self.jobs {
            parts.push(format!("job-{}", job.number));
        }
        for worker in self.workers.iter().skip(1) {
            parts.push(worker.name());
        }
        if self.task_faults_permille + self.storage_faults_permille > 0 {
            parts.push(TASK_FAULTS.to_owned());
        }
        parts
    }

    /// Leaves out all parts but those that are kept.
    pub fn keep(&mut self, keeps: impl Fn(&str) -> bool) {
        self.faults
            .retain(|fault| keeps(&format!("fault-{}", fault.number)));
        self.commands
            .retain(|command| keeps(&format!("command-{}", command.number)));
        self.reactions
            .retain(|reaction| keeps(&format!("reaction-{}", reaction.number)));
        self.jobs
            .retain(|job| keeps(&format!("job-{}", job.number)));
        self.workers
            .retain(|worker| worker.number == 1 || keeps(&worker.name()));
        if !keeps(TASK_FAULTS) {
            self.task_faults_permille = 0;
            self.storage_faults_permille = 0;
        }
    }
}

/// Draws what is done at a moment.
fn draw_reaction(chance: &mut Chance, moment: Moment, disturbance: Disturbance) -> Reaction {
    let has_attempt = !matches!(moment, Moment::Submission | Moment::Ending);
    let hits_network = disturbance.hits_network();
    let hits_hosts = disturbance.hits_hosts();
    let hits_coordinator = disturbance.hits_coordinator();
    let mut choices = Vec::new();
    if has_attempt {
        for command in [
            Command::SuspendAttempt,
            Command::CheckpointAttempt,
            Command::KillAttempt,
            Command::KillRivals,
            Command::ResumeAttempt,
        ] {
            choices.push(Reaction::Command(command));
        }
    }
    if moment == Moment::Ending || chance.happens(100) {
        choices.push(Reaction::Command(Command::KillJob));
    }
    if hits_network {
        for _ in 0..4 {
            choices.push(Reaction::Break(draw_breakage(chance)));
        }
    }
    if hits_coordinator {
        choices.push(Reaction::Coordinator(HostFault::Crash(draw_duration(
            chance,
        ))));
        choices.push(Reaction::Coordinator(HostFault::Crash(draw_duration(
            chance,
        ))));
        choices.push(Reaction::Coordinator(HostFault::Terminate));
        choices.push(Reaction::PowerLoss {
            calls: chance.between(0, 6),
        });
    }
    if hits_hosts && has_attempt {
        choices.push(Reaction::Worker(HostFault::Crash(draw_duration(chance))));
        choices.push(Reaction::Worker(HostFault::Terminate));
        choices.push(Reaction::LeaveUnheard(chance.millis(1_000, 60_000)));
        choices.push(Reaction::Worker(HostFault::Sleep(draw_duration(chance))));
    }
    let drawn = chance.pick(&choices).copied();
    drawn.unwrap_or(Reaction::Command(Command::KillJob))
}

fn draw_breakage(chance: &mut Chance) -> Breakage {
    let lasting_max = *chance.pick(&[50, 2_000, 30_000]).unwrap_or(&2_000);
    let lasting = chance.millis(1, lasting_max);
    let choices = [
        Breakage::Reset,
        Breakage::ResetPeer,
        Breakage::ResetCoordinator,
        Breakage::Sever,
        Breakage::BlockTo(lasting),
        Breakage::BlockFrom(lasting),
        Breakage::Overtake(chance.millis(30, 90)),
        Breakage::Overtake(chance.millis(30, 90)),
        Breakage::Overtake(chance.millis(1, 600)),
    ];
    *chance.pick(&choices).unwrap_or(&Breakage::Reset)
}

fn draw_command(chance: &mut Chance) -> Command {
    match chance.count(0, 19) {
        0..=5 => Command::SuspendAttempt,
        6..=8 => Command::CheckpointAttempt,
        9 | 10 => Command::KillAttempt,
        11..=14 => Command::ResumeAttempt,
        15 => Command::SuspendJob,
        16 => Command::HoldJob,
        17 | 18 => Command::ResumeJob,
        _ => Command::KillJob,
    }
}

fn draw_host_fault(chance: &mut Chance) -> HostFault {
    match chance.count(0, 9) {
        0..=4 => HostFault::Crash(draw_duration(chance)),
        5 | 6 => HostFault::Sleep(draw_duration(chance)),
        7 => HostFault::Terminate,
        _ => {
            let jump = chance.between(0, 2 * JUMP_MICROS);
            HostFault::Jump(jump.cast_signed() - JUMP_MICROS.cast_signed())
        }
    }
}

fn draw_coordinator_fault(chance: &mut Chance) -> Fault {
    let lasting = draw_duration(chance);
    match chance.count(0, 9) {
        0..=2 => Fault::Host(COORDINATOR.to_owned(), HostFault::Crash(lasting)),
        3..=6 => Fault::Disk(DiskFault::PowerLoss {
            calls: chance.between(0, CALLS_MAX),
        }),
        7 => Fault::Disk(DiskFault::Full {
            free: chance.between(0, 4096),
            lasting,
        }),
        _ => Fault::Disk(DiskFault::Rates {
            rates: draw_rates(chance),
            lasting,
        }),
    }
}

fn draw_rates(chance: &mut Chance) -> FaultRates {
    let mut rates = FaultRates::default();
    match chance.count(0, 3) {
        0 => rates.errors = 0.01,
        1 => rates.short = 0.3,
        2 => rates.sync = chance.millis(1, 300),
        _ => rates.stalls = (0.05, chance.millis(1, 4_000)),
    }
    rates
}

fn draw_duration(chance: &mut Chance) -> Duration {
    let most = *chance.pick(&[100, 4_000, 60_000]).unwrap_or(&4_000);
    chance.millis(1, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_without_parts_keeps_the_others() {
        for seed in 0..200 {
            let whole = Plan::draw(seed);
            let parts = whole.parts();
            let mut half = whole.clone();
            let kept: Vec<&String> = parts.iter().step_by(2).collect();
            half.keep(|part| kept.iter().any(|kept| *kept == part));
            let left: Vec<String> = half.parts();
            assert_eq!(left.iter().collect::<Vec<_>>(), kept);
            for fault in &half.faults {
                assert!(whole.faults.contains(fault));
            }
            for command in &half.commands {
                assert!(whole.commands.contains(command));
            }
            let mut nothing = whole.clone();
            nothing.keep(|_| false);
            assert_eq!(nothing.parts(), Vec::<String>::new());
            assert_eq!(nothing.workers, whole.workers[..1]);
        }
    }
}
