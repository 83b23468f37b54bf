//! A pair of values indexed by `TaskKind`, for everything that is counted separately for maps and reduces.

use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

use crate::ids::TaskKind;

/// One value for maps, one for reduces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByKind<T> {
    pub map: T,
    pub reduce: T,
}

impl<T> ByKind<T> {
    /// Creates a pair from the results of a function for each kind.
    pub fn from_fn(value: impl Fn(TaskKind) -> T) -> ByKind<T> {
        ByKind {
            map: value(TaskKind::Map),
            reduce: value(TaskKind::Reduce),
        }
    }
}

impl<T> Index<TaskKind> for ByKind<T> {
    type Output = T;
    fn index(&self, kind: TaskKind) -> &T {
        match kind {
            TaskKind::Map => &self.map,
            TaskKind::Reduce => &self.reduce,
        }
    }
}

impl<T> IndexMut<TaskKind> for ByKind<T> {
    fn index_mut(&mut self, kind: TaskKind) -> &mut T {
        match kind {
            TaskKind::Map => &mut self.map,
            TaskKind::Reduce => &mut self.reduce,
        }
    }
}
