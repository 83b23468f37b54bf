//! The ideal that HFSP approximates with whole tasks: divisible rates with a maximum per job. Exact fair
//! sharing and fair sojourn protocol.

use std::collections::BTreeSet;

use napreduce_engine::Ratio;

/// A job of divisible work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DivisibleJob {
    /// Arrival time.
    pub arrival: Ratio,
    /// Work; one unit per second at rate 1.
    pub work: Ratio,
    /// Maximum rate.
    pub rate_max: Ratio,
}

/// Rates by job from a time on.
pub type Rates = (Ratio, Vec<Ratio>);

/// The schedule of all jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Course {
    /// End of each job; `None` if it never ends.
    pub completions: Vec<Option<Ratio>>,
    /// Rates from each time on at which they may change.
    pub rates: Vec<Rates>,
}

/// Schedules equal shares, capped at each job's maximum.
pub fn fair_shares(capacity: Ratio, jobs: &[DivisibleJob]) -> Course {
    let mut system = System::new(jobs);
    let mut course = Course {
        completions: vec![None; jobs.len()],
        rates: Vec::new(),
    };
    while let Some(now) = system.next_start() {
        let rates = system.fair_rates(capacity);
        course.rates.push((now, rates.clone()));
        if !system.run(&rates) {
            break;
        }
        system.note_completions(&mut course.completions);
    }
    course
}

/// Schedules jobs at their maximum rate in the order of their ends under fair shares without further
/// arrivals.
pub fn fair_sojourn(capacity: Ratio, jobs: &[DivisibleJob]) -> Course {
    let mut real = System::new(jobs);
    let mut fair = System::new(jobs);
    let mut fair_completions = vec![None; jobs.len()];
    let mut course = Course {
        completions: vec![None; jobs.len()],
        rates: Vec::new(),
    };
    while let Some(now) = real.next_start() {
        fair.run_to(now, capacity, &mut fair_completions);
        let order = fair.projected_order(capacity, &fair_completions);
        let rates = real.greedy_rates(capacity, &order);
        course.rates.push((now, rates.clone()));
        if !real.run(&rates) {
            break;
        }
        real.note_completions(&mut course.completions);
    }
    course
}

/// The remaining work of jobs at a time.
#[derive(Debug, Clone)]
struct System {
    now: Ratio,
    jobs: Vec<DivisibleJob>,
    left: Vec<Ratio>,
    /// Future arrivals.
    coming: BTreeSet<(Ratio, usize)>,
    present: BTreeSet<usize>,
}

impl System {
    fn new(jobs: &[DivisibleJob]) -> System {
        let coming: BTreeSet<_> = jobs
            .iter()
            .enumerate()
            .map(|(index, job)| (job.arrival, index))
            .collect();
        let now = coming.first().map_or(Ratio::ZERO, |first| first.0);
        let left = jobs.iter().map(|job| job.work).collect();
        let mut system = System {
            now,
            jobs: jobs.to_vec(),
            left,
            coming,
            present: BTreeSet::new(),
        };
        system.admit();
        system
    }

    fn admit(&mut self) {
        while let Some(&(arrival, job)) = self.coming.first()
            && arrival <= self.now
        {
            self.coming.pop_first();
            self.present.insert(job);
        }
    }

    /// Returns the start of the next rates, skipping idle time; `None` when all jobs are done.
    fn next_start(&mut self) -> Option<Ratio> {
        if self.present.is_empty() {
            self.now = self.coming.first()?.0;
            self.admit();
        }
        Some(self.now)
    }

    fn fair_rates(&self, capacity: Ratio) -> Vec<Ratio> {
        let mut rates = vec![Ratio::ZERO; self.jobs.len()];
        let mut smallest_first: Vec<usize> = self.present.iter().copied().collect();
        smallest_first.sort_by_key(|&job| self.jobs[job].rate_max);
        let mut rest = capacity;
        let mut sharing = smallest_first.len();
        for job in smallest_first {
            rates[job] = self.jobs[job]
                .rate_max
                .min(rest / Ratio::whole(sharing as u64));
            rest = rest - rates[job];
            sharing -= 1;
        }
        rates
    }

    fn greedy_rates(&self, capacity: Ratio, order: &[usize]) -> Vec<Ratio> {
        let mut rates = vec![Ratio::ZERO; self.jobs.len()];
        let mut rest = capacity;
        for &job in order.iter().filter(|job| self.present.contains(job)) {
            rates[job] = self.jobs[job].rate_max.min(rest);
            rest = rest - rates[job];
        }
        rates
    }

    /// Advances at these rates to the next completion or arrival. Returns false if there is none.
    fn run(&mut self, rates: &[Ratio]) -> bool {
        let served = self
            .present
            .iter()
            .filter(|&&job| rates[job] > Ratio::ZERO || self.left[job] <= Ratio::ZERO);
        let next_end = served.map(|&job| match self.left[job] <= Ratio::ZERO {
            true => Ratio::ZERO,
            false => self.left[job] / rates[job],
        });
        let next_arrival = self.coming.first().map(|&(arrival, _)| arrival - self.now);
        let Some(span) = next_end.chain(next_arrival).min() else {
            return false;
        };
        self.advance(span, rates);
        true
    }

    fn advance(&mut self, span: Ratio, rates: &[Ratio]) {
        self.now = self.now + span;
        for &job in &self.present {
            self.left[job] = self.left[job] - rates[job] * span;
        }
        self.admit();
    }

    /// Removes completed jobs. A simultaneous arrival makes no difference.
    fn note_completions(&mut self, completions: &mut [Option<Ratio>]) {
        let done: Vec<usize> = self
            .present
            .iter()
            .copied()
            .filter(|&job| self.left[job] <= Ratio::ZERO)
            .collect();
        for job in done {
            // A job without work completes at the next call.
            completions[job] = Some(self.now);
            self.present.remove(&job);
        }
    }

    /// Advances to a time under fair sharing.
    fn run_to(&mut self, to: Ratio, capacity: Ratio, completions: &mut [Option<Ratio>]) {
        while let Some(now) = self.next_start()
            && now < to
        {
            let rates = self.fair_rates(capacity);
            let mut ahead = self.clone();
            if ahead.run(&rates) && ahead.now <= to {
                *self = ahead;
                self.note_completions(completions);
            } else {
                self.advance(to - now, &rates);
            }
        }
    }

    /// Returns the known jobs in the order of their completions under fair shares.
    fn projected_order(&self, capacity: Ratio, completions: &[Option<Ratio>]) -> Vec<usize> {
        let mut ahead = self.clone();
        ahead.coming.clear();
        let mut finishes = completions.to_vec();
        while let Some(_now) = ahead.next_start() {
            let rates = ahead.fair_rates(capacity);
            if !ahead.run(&rates) {
                break;
            }
            ahead.note_completions(&mut finishes);
        }
        let mut order: Vec<usize> = (0..self.jobs.len()).collect();
        // `None` (never) would sort before every time.
        order.sort_by_key(|&job| {
            (
                finishes[job].is_none(),
                finishes[job],
                self.jobs[job].arrival,
                job,
            )
        });
        order
    }
}
