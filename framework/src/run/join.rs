//! Joins of two datasets by key.

use std::marker::PhantomData;

use crate::builder::{Join, JoinRow, Outcome, RECORD_INPUTS};
use crate::codec::{Key, Value};
use crate::output::Output;
use crate::program::dataset::{Dataset, InputFiles, JobInput};
use crate::records::Pairs;

use super::{JobRequest, job};

impl<K: Key, L: Value> Dataset<(K, L)> {
    /// Joins these pairs with those of another dataset by key. `inner`, `left`, `right` or `full` chooses the pairs, as in a
    /// [`Join`], and makes a job of it.
    ///
    /// The left values of one key are kept in memory; so call this on the dataset with fewer values per key. The closure
    /// captures nothing; a join with parameters is a job that begins with [`Job::join`](crate::Job::join).
    ///
    /// ```
    /// use napreduce::Dataset;
    /// use napreduce::run::Local;
    ///
    /// # fn main() -> Result<(), napreduce::program::Error> {
    /// let users = Dataset::<(u64, String)>::of([(1, "ann".to_owned()), (2, "bob".to_owned())])?;
    /// let orders = Dataset::<(u64, f64)>::of([(2, 30.0), (1, 12.5), (3, 99.0)])?;
    /// let spent = users.join(&orders).inner(|_, user, price, out| out.emit(user, *price));
    /// let spent = spent.reduces(1).run(&Local::threads())?;
    /// assert_eq!(spent.collect()?, [("ann".to_owned(), 12.5), ("bob".to_owned(), 30.0)]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn join<R: Value>(&self, right: &Dataset<(K, R)>) -> DatasetJoin<K, L, R>
    where
        L::Owned: JoinRow,
        R::Owned: JoinRow,
    {
        DatasetJoin {
            left: self.named(),
            right: right.named(),
            types: PhantomData,
        }
    }
}

/// Two datasets by key, without a choice of pairs yet; made by [`Dataset::join`].
///
/// The closure of each method gets the key, a left and a right value, and where it writes pairs. It is called for each right
/// value in the order of its dataset, with all left values.
#[must_use = "a join is no job before its pairs are chosen: call `inner`, `left`, `right` or `full`"]
#[derive(Debug, Clone)]
pub struct DatasetJoin<K, L, R> {
    left: InputFiles,
    right: InputFiles,
    types: PhantomData<fn(K, L) -> R>,
}

impl<K, L, R> DatasetJoin<K, L, R>
where
    K: Key,
    for<'a> K::Ref<'a>: Copy,
    L: Value<Owned: JoinRow>,
    R: Value<Owned: JoinRow>,
{
    /// Joins the values whose key is in both datasets.
    pub fn inner<A: Key, B: Value, F, T>(&self, each: F) -> JobRequest<(A, B)>
    where
        F: Fn(K::Ref<'_>, &L::Owned, &R::Owned, &mut Output<Pairs<A, B>>) -> T
            + Copy
            + Send
            + Sync
            + 'static,
        T: Outcome,
    {
        self.inputs(job(move || {
            Join::<K, L::Owned, R::Owned>::of_records::<L, R>().inner(each)
        }))
    }

    /// Joins all left values; those without a right value once, with `None`.
    pub fn left<A: Key, B: Value, F, T>(&self, each: F) -> JobRequest<(A, B)>
    where
        F: Fn(K::Ref<'_>, &L::Owned, Option<&R::Owned>, &mut Output<Pairs<A, B>>) -> T
            + Copy
            + Send
            + Sync
            + 'static,
        T: Outcome,
    {
        self.inputs(job(move || {
            Join::<K, L::Owned, R::Owned>::of_records::<L, R>().left(each)
        }))
    }

    /// Joins all right values; those without a left value once, with `None`.
    pub fn right<A: Key, B: Value, F, T>(&self, each: F) -> JobRequest<(A, B)>
    where
        F: Fn(K::Ref<'_>, Option<&L::Owned>, &R::Owned, &mut Output<Pairs<A, B>>) -> T
            + Copy
            + Send
            + Sync
            + 'static,
        T: Outcome,
    {
        self.inputs(job(move || {
            Join::<K, L::Owned, R::Owned>::of_records::<L, R>().right(each)
        }))
    }

    /// Joins all values; those without a value of the other dataset once, with `None`.
    pub fn full<A: Key, B: Value, F, T>(&self, each: F) -> JobRequest<(A, B)>
    where
        F: Fn(K::Ref<'_>, Option<&L::Owned>, Option<&R::Owned>, &mut Output<Pairs<A, B>>) -> T
            + Copy
            + Send
            + Sync
            + 'static,
        T: Outcome,
    {
        self.inputs(job(move || {
            Join::<K, L::Owned, R::Owned>::of_records::<L, R>().full(each)
        }))
    }

    fn inputs<P>(&self, job: JobRequest<P>) -> JobRequest<P> {
        let [left, right] = RECORD_INPUTS;
        job.name("join")
            .input(left, [self.left.clone()])
            .input(right, [self.right.clone()])
    }
}
