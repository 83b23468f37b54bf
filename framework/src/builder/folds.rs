//! Ready folds: methods that finish a job with typed pairs of each group's key and one result.

use std::cmp::{Ordering, Reverse};

use crate::codec::{Field, Key, List, Scratch, Value};
use crate::emit::Emit;
use crate::numbers::{Number, Sum};
use crate::output::{OutputFormat, Text, TextField};
use crate::records::{PairOutput, Pairs, TypedRecords, WritePair};
use crate::user_code::{CombineStage, NoCombine};
use crate::values::Values;

use super::Job;
use super::source::Source;
use super::stages::MapStage;

/// Methods that finish the job with one pair for each group. The output is lines of text, or typed records where
/// another job or the program reads it, unless [`output`](MapStage::output) was called before with another
/// [format of pairs](PairOutput).
impl<K: Key, V: Value, G: Key, O: OutputFormat> MapStage<K, V, NoCombine, G, O> {
    /// Counts the values of each group.
    ///
    /// ```
    /// use napreduce::testing::JobTest;
    /// use napreduce::{Job, words};
    ///
    /// fn wordcount() -> Job<(String, u64)> {
    ///     Job::text().flat_map(words).count()
    /// }
    ///
    /// let test = JobTest::new(wordcount).input("to be or\nnot to be\n");
    /// assert_eq!(test.run().text(), "be\t2\nnot\t1\nor\t1\nto\t2\n");
    /// test.assert_preemption_safe();
    /// ```
    pub fn count(self) -> Job<O::Record>
    where
        O: PairOutput<G, u64, Format: WritePair<G, u64>>,
    {
        self.aggregate::<u64, u64>(|_| 1, Sum::add, |count| count)
    }

    /// Writes the key of each group once.
    ///
    /// ```
    /// use napreduce::testing::JobTest;
    /// use napreduce::{Job, words};
    ///
    /// let vocabulary = || Job::text().flat_map(words).distinct();
    /// assert_eq!(JobTest::new(vocabulary).input("to be or\nnot to be\n").run().text(), "be\nnot\nor\nto\n");
    /// ```
    pub fn distinct(self) -> Job<O::Record>
    where
        O: PairOutput<G, (), Format: WritePair<G, ()>>,
    {
        self.aggregate::<(), ()>(|_| (), |_, _| (), |()| ())
    }

    /// Adds up the values of each group. Floats are added in the order of the input, so the sum is the same however
    /// the input is split.
    ///
    /// A sum of integers outside the range of their type fails the job. Only the whole sum counts: `i64::MAX`, 1 and
    /// -1 add up to `i64::MAX` in any order. The error names the type and the key, or the range of the input if a map
    /// finds it. Emit values of a wider type, such as `i128`.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::testing::JobTest;
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize)]
    /// struct Order {
    ///     user: String,
    ///     price: f64,
    /// }
    ///
    /// # #[cfg(feature = "csv")] {
    /// let spent = || Job::csv::<Order>().flat_map(|order: Order| Some((order.user, order.price))).sum();
    /// let test = JobTest::new(spent).input("user,price\nann,1.5\nbob,2\nann,3\n");
    /// assert_eq!(test.run().text(), "ann\t4.5\nbob\t2.0\n");
    /// # }
    /// ```
    pub fn sum(self) -> Job<O::Record>
    where
        V: Sum,
        O: PairOutput<G, V, Format: WritePair<G, V>>,
    {
        if !V::IS_ORDERED {
            return self.aggregate::<V::Total, V>(V::widen, Sum::add, V::narrow);
        }
        self.fold_in_order(
            V::Total::zero(),
            |sum, value| sum.add(value.widen()),
            V::narrow,
        )
    }

    /// Returns the mean of the values of each group. The sum of integers is exact, and floats are added in the
    /// order of the input.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::testing::JobTest;
    ///
    /// let means = || Job::text().flat_map(|line: &str| Some((line.len() as u64 % 2, line.len() as u64))).mean();
    /// assert_eq!(JobTest::new(means).input("to\nbe\nnone\nnot\n").run().text(), "0\t2.6666666666666665\n1\t3.0\n");
    /// ```
    pub fn mean(self) -> Job<O::Record>
    where
        V: Number,
        O: PairOutput<G, f64, Format: WritePair<G, f64>>,
    {
        let ratio = |(sum, count)| V::ratio(sum, count);
        if !V::IS_ORDERED {
            return self.aggregate::<(V::Exact, u64), f64>(
                |value| (value.exact(), 1),
                Sum::add,
                ratio,
            );
        }
        let add = |sum: &mut (V::Exact, u64), value: V| sum.add((value.exact(), 1));
        self.fold_in_order((V::Exact::zero(), 0), add, ratio)
    }

    /// Returns the least value of each group, in the order of [`Key`].
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::testing::JobTest;
    ///
    /// let first = || Job::text().flat_map(|line: &str| Some((line.len() as u64, line.to_owned()))).min();
    /// assert_eq!(JobTest::new(first).input("to\nbe\nnot\n").run().text(), "2\tbe\n3\tnot\n");
    /// ```
    pub fn min(self) -> Job<O::Record>
    where
        V: Key,
        V::Owned: PartialOrd,
        O: PairOutput<G, V, Format: WritePair<G, V>>,
    {
        self.reduce_by_key(|least, more| {
            if order::<V>(&more, least) == Ordering::Less {
                *least = more;
            }
        })
    }

    /// Returns the greatest value of each group, in the order of [`Key`].
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::testing::JobTest;
    ///
    /// let longest = || Job::text().flat_map(|line: &str| Some(("longest", line.len() as u64))).max();
    /// assert_eq!(JobTest::new(longest).input("to\nbe\nnot\n").run().text(), "longest\t3\n");
    /// ```
    pub fn max(self) -> Job<O::Record>
    where
        V: Key,
        V::Owned: PartialOrd,
        O: PairOutput<G, V, Format: WritePair<G, V>>,
    {
        self.reduce_by_key(|greatest, more| {
            if order::<V>(&more, greatest) == Ordering::Greater {
                *greatest = more;
            }
        })
    }

    /// Returns the `n` greatest values of each group, the greatest first. Fewer if the group has fewer.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::testing::JobTest;
    ///
    /// let longest = || Job::text().flat_map(|line: &str| Some(("lengths", line.len() as u64))).top(2);
    /// assert_eq!(JobTest::new(longest).input("to\nbring\nmore\nnot\n").run().text(), "lengths\t5\t4\n");
    /// ```
    pub fn top(self, n: usize) -> Job<O::Record>
    where
        V: Key,
        V::Owned: PartialOrd,
        O: PairOutput<G, List<V>, Format: WritePair<G, List<V>>>,
    {
        let add = move |top: &mut Vec<V::Owned>, more: Vec<V::Owned>| {
            for value in more {
                let place =
                    top.partition_point(|greater| order::<V>(greater, &value) != Ordering::Less);
                if place < n {
                    top.truncate(n - 1);
                    top.insert(place, value);
                }
            }
        };
        let list = move |value| if n == 0 { Vec::new() } else { vec![value] };
        self.aggregate::<List<V>, List<V>>(list, add, |top| top)
    }

    /// Returns the first value of each group: in the order of the rest of the key after the group, then of the
    /// input.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::testing::JobTest;
    ///
    /// let first = || Job::text().flat_map(|line: &str| Some((line.len() as u64, line.to_owned()))).first();
    /// assert_eq!(JobTest::new(first).input("to\nbe\nnot\n").run().text(), "2\tto\n3\tnot\n");
    /// ```
    pub fn first(self) -> Job<O::Record>
    where
        O: PairOutput<G, V, Format: WritePair<G, V>>,
    {
        self.pairs().reduce(|group, values, out| {
            if let Some(first) = values.owned().next() {
                O::Format::write(out, group, first);
            }
        })
    }

    /// Returns all values of each group as a list: in the order of the rest of the key after the group, then of
    /// the input. A list is kept in memory while it is written.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::testing::JobTest;
    ///
    /// let by_length = || Job::text().flat_map(|line: &str| Some((line.len() as u64, line.to_owned()))).collect();
    /// assert_eq!(JobTest::new(by_length).input("to\nbe\nnot\n").run().text(), "2\tto\tbe\n3\tnot\n");
    /// ```
    pub fn collect(self) -> Job<O::Record>
    where
        O: PairOutput<G, List<V>, Format: WritePair<G, List<V>>>,
    {
        self.pairs()
            .reduce(|group, values, out| O::Format::write(out, group, values.owned().collect()))
    }

    /// Folds the values of each group into one with an associative and commutative function.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::testing::JobTest;
    ///
    /// let parity = || {
    ///     Job::text().flat_map(|line: &str| Some(("all", line.len() as u64))).reduce_by_key(|bits, more| *bits ^= more)
    /// };
    /// assert_eq!(JobTest::new(parity).input("to\nbe\nnot\n").run().text(), "all\t3\n");
    /// ```
    pub fn reduce_by_key<F>(self, fold: F) -> Job<O::Record>
    where
        F: Fn(&mut V::Owned, V::Owned) + Send + Sync + 'static,
        O: PairOutput<G, V, Format: WritePair<G, V>>,
    {
        self.combine(fold)
            .pairs()
            .reduce_total(|group, total, out| O::Format::write(out, group, total))
    }

    /// Folds the values of each group in their order, without a combiner.
    fn fold_in_order<A: Clone + Send + Sync + 'static, X: Value>(
        self,
        start: A,
        fold: impl Fn(&mut A, V::Owned) + Send + Sync + 'static,
        finish: impl Fn(A) -> X::Owned + Send + Sync + 'static,
    ) -> Job<O::Record>
    where
        O: PairOutput<G, X, Format: WritePair<G, X>>,
    {
        self.pairs().reduce(move |group, values, out| {
            let mut result = start.clone();
            values.owned().for_each(|value| fold(&mut result, value));
            O::Format::write(out, group, finish(result));
        })
    }
}

impl<K: Key, V: Key, O: OutputFormat> MapStage<K, V, NoCombine, K, O> {
    /// Counts the different values of each group. Takes constant memory: values are sorted behind their keys. 0 and −0
    /// are one value, and so are all NaN.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::testing::JobTest;
    ///
    /// let visitors = || {
    ///     Job::text()
    ///         .flat_map(|line: &str| line.split_once(' ').map(|(page, user)| (page.to_owned(), user.to_owned())))
    ///         .count_distinct()
    /// };
    /// let test = JobTest::new(visitors).input("/a ann\n/b bob\n/a ann\n/a bob\n");
    /// assert_eq!(test.run().text(), "/a\t2\n/b\t1\n");
    /// ```
    pub fn count_distinct(self) -> Job<O::Record>
    where
        O: PairOutput<K, u64, Format: WritePair<K, u64>>,
    {
        let sorted = self.values_in_keys().combine(|(), ()| ());
        sorted.pairs().reduce(|key, values, out| {
            let mut before = None::<Vec<u8>>;
            let mut count = 0;
            while let Some((entry, _)) = values.next_encoded() {
                match &mut before {
                    Some(before) if before == entry => continue,
                    Some(before) => entry.clone_into(before),
                    None => before = Some(entry.to_vec()),
                }
                count += 1;
            }
            O::Format::write(out, key, count);
        })
    }
}

impl<K: Key, V: Key> Source<TypedRecords<K, V>> {
    /// Writes the `n` pairs with the greatest values, the greatest first; equal values in the order of their keys.
    /// One reduce writes them. Values are sorted as keys, so −0 is written as 0.
    ///
    /// ```
    /// use napreduce::testing::JobTest;
    /// use napreduce::{Job, words};
    ///
    /// fn count() -> Job<(String, u64)> {
    ///     Job::text().flat_map(words).count()
    /// }
    ///
    /// fn top() -> Job<(String, u64)> {
    ///     Job::records().top_by_value(2)
    /// }
    ///
    /// let counts = JobTest::new(count).input("to be or\nnot to be\n").for_next_job().run();
    /// assert_eq!(JobTest::new(top).input(&counts.parts[0]).run().text(), "be\t2\nto\t2\n");
    /// ```
    pub fn top_by_value(self, n: usize) -> Job<(K, V)>
    where
        V::Owned: TextField,
        for<'a> K::Ref<'a>: TextField,
    {
        self.map(|(key, value), out: &mut Emit<((), Reverse<V>, K), ()>| {
            out.emit(((), Reverse(value), key), ())
        })
        .group_by::<()>()
        .reduces(1)
        .output(Pairs::<K, V>::default())
        .reduce(move |(), pairs, out| {
            for _ in 0..n {
                let Some((((), Reverse(value), key), ())) = pairs.next_entry() else {
                    break;
                };
                Pairs::<K, V>::write(out, key, V::to_owned(value));
            }
        })
    }
}

/// Methods that finish the job with pairs made by a closure.
impl<K: Key, V: Value, C: CombineStage<V>, G: Key> MapStage<K, V, C, G, Text> {
    /// Makes one pair of each group. The types of key and value are those that the closure returns.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::testing::JobTest;
    ///
    /// let longest = || {
    ///     Job::text()
    ///         .flat_map(|line: &str| Some((line.len() as u64 % 2, line.to_owned())))
    ///         .map_groups(|is_odd, lines| (is_odd == 1, lines.owned().max_by_key(String::len)))
    /// };
    /// assert_eq!(JobTest::new(longest).input("to\nbring\nmore\n").run().text(), "false\tmore\ntrue\tbring\n");
    /// ```
    pub fn map_groups<F, A, B>(self, pair: F) -> Job<(A::Family, B::Family)>
    where
        F: Fn(G::Ref<'_>, &mut Values<'_, K, V>) -> (A, B) + Send + Sync + 'static,
        A: Field<Family: Key> + TextField,
        B: Field + TextField,
    {
        self.flat_map_groups(move |group, values| [pair(group, values)])
    }

    /// Makes any number of pairs of each group: the closure returns an `Option`, an array, a `Vec` or another
    /// iterator of pairs that own what they hold.
    ///
    /// ```
    /// use napreduce::testing::JobTest;
    /// use napreduce::{Job, words};
    ///
    /// let repeated = || {
    ///     Job::text().flat_map(words).flat_map_groups(|word, ones| {
    ///         let count = ones.count();
    ///         (count > 1).then(|| (word.to_owned(), count))
    ///     })
    /// };
    /// assert_eq!(JobTest::new(repeated).input("to be or\nnot to be\n").run().text(), "be\t2\nto\t2\n");
    /// ```
    pub fn flat_map_groups<F, I, A, B>(self, pairs: F) -> Job<(A::Family, B::Family)>
    where
        F: Fn(G::Ref<'_>, &mut Values<'_, K, V>) -> I + Send + Sync + 'static,
        I: IntoIterator<Item = (A, B)>,
        A: Field<Family: Key> + TextField,
        B: Field + TextField,
    {
        self.output(Pairs::<A::Family, B::Family>::default())
            .reduce(move |group, values, out| {
                for (key, value) in pairs(group, values) {
                    out.emit(key, value);
                }
            })
    }
}

/// Compares owned values in the order of their encodings.
#[inline]
fn order<V: Key>(one: &V::Owned, other: &V::Owned) -> Ordering
where
    V::Owned: PartialOrd,
{
    one.partial_cmp(other).unwrap_or_else(|| {
        // One of them holds a NaN, which is the greatest number.
        as_key::<V>(one).cmp(&as_key::<V>(other))
    })
}

/// Returns the encoding of a value as a key, in which both zeros are one.
fn as_key<V: Key>(value: &V::Owned) -> Vec<u8> {
    let mut bytes = Vec::new();
    V::encode_owned(value, true, &mut bytes);
    let scratch = Scratch::new();
    let value = V::decode_whole(&bytes, &scratch).expect("the value was encoded just now");
    let mut key = Vec::new();
    V::encode_key(value, true, &mut key);
    key
}
