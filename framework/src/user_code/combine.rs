//! The combiner of a job: none, or an associative fold over the values of one key. It is a type parameter, so
//! that the loops are monomorphised. The data plane folds before the sort and at every merge.

use std::marker::PhantomData;
use std::sync::Arc;

use napreduce_data::{
    CollectError, Collector, CollectorSettings, Combiner, ReduceError, ReduceInput, ReduceSettings,
};

use crate::codec::{Key, Value};
use crate::values::Values;

/// Combines records of one key before the reduce: [`Fold`], made by `combine`, or [`NoCombine`].
///
/// ```
/// use napreduce::builder::{CombineStage, MapStage, Sum};
/// use napreduce::{Emit, Job};
///
/// /// Writes each key once, with or without a combiner.
/// fn keys_once(stage: MapStage<String, u64, impl CombineStage<u64>>) -> Job {
///     stage.reduce(|key, _, out| out.emit(key, ()))
/// }
///
/// let lines = || Job::text().map(|line: &str, out: &mut Emit<String, u64>| out.emit(line, 1));
/// let jobs = [keys_once(lines()), keys_once(lines().combine(Sum::add))];
/// # let _ = jobs;
/// ```
///
/// Sealed: only these two types implement it.
#[must_use = "it is part of a map stage"]
pub trait CombineStage<V: Value>: Combining<V, Total = V> {}

impl<V: Value, C: Combining<V, Total = V>> CombineStage<V> for C {}

/// The constructor for collecting values of type `V`, with or without a fold.
pub trait Combining<V: Value>: Merging {
    /// The type of the values that are shuffled.
    type Total: Value;

    /// Returns a collector for one map task.
    fn collector(&self, settings: CollectorSettings) -> Result<Collector<V::Owned>, CollectError>;
}

/// The constructor for merging shuffled records, with or without a fold.
pub trait Merging: Clone + Send + Sync + 'static {
    /// Returns the merged input of one reduce task.
    fn reduce_input(&self, settings: ReduceSettings) -> Result<ReduceInput, ReduceError>;
}

/// No combiner: every record is shuffled as emitted.
///
/// ```
/// use napreduce::Job;
/// use napreduce::builder::{MapStage, Sum};
///
/// /// A stage that has no combiner yet can be given one.
/// fn counted(stage: MapStage<String, u64>) -> Job {
///     stage.combine(Sum::add).reduce_total(|key, count, out| out.emit(key, count))
/// }
/// # let _ = counted;
/// ```
#[derive(Debug, Clone, Copy)]
#[must_use = "it is part of a map stage"]
pub struct NoCombine;

impl<V: Value> Combining<V> for NoCombine {
    type Total = V;

    fn collector(&self, settings: CollectorSettings) -> Result<Collector<V::Owned>, CollectError> {
        Collector::plain(settings)
    }
}

impl Merging for NoCombine {
    fn reduce_input(&self, settings: ReduceSettings) -> Result<ReduceInput, ReduceError> {
        ReduceInput::open(settings)
    }
}

/// An associative fold: `fold(&mut total, more)`.
///
/// ```
/// use napreduce::builder::{Fold, MapStage, Sum};
/// use napreduce::Job;
///
/// /// Writes the totals of any fold.
/// fn totals<F>(stage: MapStage<String, u64, Fold<u64, F>>) -> Job
/// where
///     F: Fn(&mut u64, u64) + Send + Sync + 'static,
/// {
///     stage.reduce_total(|key, total, out| out.emit(key, total))
/// }
///
/// let lines = || Job::text().map(|line: &str, out: &mut napreduce::Emit<String, u64>| out.emit(line, 1));
/// let jobs = [totals(lines().combine(Sum::add)), totals(lines().combine(|most, more| *most = more.max(*most)))];
/// # let _ = jobs;
/// ```
#[must_use = "it is part of a map stage"]
pub struct Fold<V, F> {
    fold: Arc<F>,
    types: PhantomData<fn(V)>,
}

impl<V, F> Fold<V, F> {
    pub(crate) fn new(fold: F) -> Self {
        Fold {
            fold: Arc::new(fold),
            types: PhantomData,
        }
    }
}

impl<V: Value, F: Fn(&mut V::Owned, V::Owned)> Fold<V, F> {
    /// Folds the values of a group. Returns `None` if the first one cannot be read, which fails the task.
    pub(crate) fn total<K: Key>(&self, values: &mut Values<'_, K, V>) -> Option<V::Owned> {
        values.owned().reduce(|mut total, more| {
            (self.fold)(&mut total, more);
            total
        })
    }
}

impl<V, F> Clone for Fold<V, F> {
    fn clone(&self) -> Self {
        Fold {
            fold: Arc::clone(&self.fold),
            types: PhantomData,
        }
    }
}

impl<V, F> Combining<V> for Fold<V, F>
where
    V: Value,
    F: Fn(&mut V::Owned, V::Owned) + Send + Sync + 'static,
{
    type Total = V;

    fn collector(&self, settings: CollectorSettings) -> Result<Collector<V::Owned>, CollectError> {
        Collector::combining(settings, self.clone())
    }
}

impl<V, F> Merging for Fold<V, F>
where
    V: Value,
    F: Fn(&mut V::Owned, V::Owned) + Send + Sync + 'static,
{
    fn reduce_input(&self, settings: ReduceSettings) -> Result<ReduceInput, ReduceError> {
        ReduceInput::open_combining(settings, self)
    }
}

impl<V, F> Combiner for Fold<V, F>
where
    V: Value,
    F: Fn(&mut V::Owned, V::Owned) + Send + Sync + 'static,
{
    type Value = V::Owned;

    #[inline]
    fn fold(&self, into: &mut V::Owned, more: V::Owned) {
        (self.fold)(into, more);
    }

    #[inline]
    fn encode(&self, value: &V::Owned, out: &mut Vec<u8>) {
        V::encode_owned(value, true, out);
    }

    #[inline]
    fn decode(&self, bytes: &[u8]) -> Result<V::Owned, String> {
        V::decode_owned(bytes).map_err(|error| error.to_string())
    }

    #[inline]
    fn heap_bytes(&self, value: &V::Owned) -> usize {
        V::heap_bytes(value)
    }
}

/// A fold of accumulators of type `A`, each of which is made of one emitted value.
pub(crate) struct Aggregate<A, P, F> {
    prepare: Arc<P>,
    pub(crate) fold: Fold<A, F>,
}

impl<A, P, F> Aggregate<A, P, F> {
    pub(crate) fn new(prepare: P, fold: F) -> Self {
        Aggregate {
            prepare: Arc::new(prepare),
            fold: Fold::new(fold),
        }
    }
}

impl<A, P, F> Clone for Aggregate<A, P, F> {
    fn clone(&self) -> Self {
        Aggregate {
            prepare: Arc::clone(&self.prepare),
            fold: self.fold.clone(),
        }
    }
}

impl<V, A, P, F> Combining<V> for Aggregate<A, P, F>
where
    V: Value,
    A: Value,
    P: Fn(V::Owned) -> A::Owned + Send + Sync + 'static,
    F: Fn(&mut A::Owned, A::Owned) + Send + Sync + 'static,
{
    type Total = A;

    fn collector(&self, settings: CollectorSettings) -> Result<Collector<V::Owned>, CollectError> {
        let prepare = Arc::clone(&self.prepare);
        Collector::preparing(settings, self.fold.clone(), move |value| prepare(value))
    }
}

impl<A, P, F> Merging for Aggregate<A, P, F>
where
    A: Value,
    P: Send + Sync + 'static,
    F: Fn(&mut A::Owned, A::Owned) + Send + Sync + 'static,
{
    fn reduce_input(&self, settings: ReduceSettings) -> Result<ReduceInput, ReduceError> {
        self.fold.reduce_input(settings)
    }
}
