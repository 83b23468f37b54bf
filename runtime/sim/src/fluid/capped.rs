//! Sharing when a job can use only so much: max-min shares with caps, and fair sojourn over them.
//!
//! Owns rates as a function of time. Every change looks at all jobs: this is for references, not for a million jobs. Does
//! not own whole tasks: that is what slots are for.

use super::number::Number;

/// A job that can use only so much of the server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CappedJob<N> {
    /// When it comes.
    pub arrival: N,
    /// Its work.
    pub work: N,
    /// The most it can use.
    pub cap: N,
}

/// How the server is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CappedPolicy {
    /// Equal shares, none above its cap.
    Ps,
    /// In the order in which they would end under that, each up to its cap.
    Fsp,
}

/// What became of the jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct Capped<N> {
    /// When each ends.
    pub ends: Vec<N>,
    /// From when which rates hold; a job that is not there has rate 0.
    pub rates: Vec<(N, Vec<N>)>,
}

/// When jobs end on a server of this capacity, and at which rates they are served. Jobs must come in the order of their
/// arrivals.
pub fn capped<N: Number>(jobs: &[CappedJob<N>], capacity: N, policy: CappedPolicy) -> Capped<N> {
    let zero = N::whole(0);
    let mut real = System { left: vec![None; jobs.len()] };
    let mut model = System { left: vec![None; jobs.len()] };
    // Jobs that ended in the virtual system, in that order.
    let mut ended: Vec<usize> = Vec::new();
    let mut result = Capped { ends: vec![zero; jobs.len()], rates: Vec::new() };
    let (mut now, mut next) = (zero, 0);
    loop {
        while jobs.get(next).is_some_and(|job| !now.below(job.arrival)) {
            real.left[next] = Some(jobs[next].work);
            model.left[next] = Some(jobs[next].work);
            next += 1;
        }
        let shares = model.shares(jobs, capacity);
        let rates = match policy {
            CappedPolicy::Ps => real.shares(jobs, capacity),
            CappedPolicy::Fsp => {
                let coming = System { left: model.left.clone() }.order_of_ends(jobs, capacity);
                real.greedy(jobs, capacity, ended.iter().copied().chain(coming))
            }
        };
        if real.left.iter().any(Option::is_some)
            && result.rates.last().is_none_or(|last| differ(&last.1, &rates))
        {
            result.rates.push((now, rates.clone()));
        }
        let arrival = jobs.get(next).map(|job| job.arrival - now);
        let ends = [arrival, real.next_end(&rates), model.next_end(&shares)];
        let Some(span) = ends.into_iter().flatten().reduce(N::least) else { return result };
        now = now + span;
        ended.extend(model.advance(span, &shares));
        for job in real.advance(span, &rates) {
            result.ends[job] = now;
        }
    }
}

fn differ<N: Number>(one: &[N], other: &[N]) -> bool {
    one.iter().zip(other).any(|(one, other)| !one.order(*other).is_eq())
}

/// The work left of the jobs that are there.
struct System<N> {
    left: Vec<Option<N>>,
}

impl<N: Number> System<N> {
    /// Equal shares with caps: who can use less than an equal share leaves the rest to the others.
    fn shares(&self, jobs: &[CappedJob<N>], capacity: N) -> Vec<N> {
        let mut rates = vec![N::whole(0); self.left.len()];
        let mut here: Vec<usize> = (0..self.left.len()).filter(|&job| self.left[job].is_some()).collect();
        here.sort_by(|&one, &other| jobs[one].cap.order(jobs[other].cap));
        let mut rest = capacity;
        for (position, &job) in here.iter().enumerate() {
            let equal = rest / N::whole((here.len() - position) as u64);
            rates[job] = equal.least(jobs[job].cap);
            rest = rest - rates[job];
        }
        rates
    }

    /// As much as each can use, in this order.
    fn greedy(&self, jobs: &[CappedJob<N>], capacity: N, order: impl Iterator<Item = usize>) -> Vec<N> {
        let mut rates = vec![N::whole(0); self.left.len()];
        let mut rest = capacity;
        for job in order.filter(|&job| self.left[job].is_some()) {
            rates[job] = rest.least(jobs[job].cap);
            rest = rest - rates[job];
        }
        rates
    }

    /// How long until the first job ends at these rates.
    fn next_end(&self, rates: &[N]) -> Option<N> {
        let served = self.left.iter().zip(rates).filter(|(_, rate)| N::whole(0).below(**rate));
        served.filter_map(|(left, rate)| left.map(|left| left / *rate)).reduce(N::least)
    }

    /// Serves for so long; the jobs that end, in their order.
    fn advance(&mut self, span: N, rates: &[N]) -> Vec<usize> {
        let mut ended = Vec::new();
        for (job, left) in self.left.iter_mut().enumerate() {
            let Some(work) = left else { continue };
            *work = *work - span * rates[job];
            if !N::whole(0).below(*work) {
                *left = None;
                ended.push(job);
            }
        }
        ended
    }

    /// The order in which the jobs would end if no other came.
    fn order_of_ends(mut self, jobs: &[CappedJob<N>], capacity: N) -> Vec<usize> {
        let mut order = Vec::new();
        loop {
            let rates = self.shares(jobs, capacity);
            let Some(span) = self.next_end(&rates) else { return order };
            order.extend(self.advance(span, &rates));
        }
    }
}
