//! The numbers of the live attempts at a task: at most two, stored inline, because every launch adds one.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// The numbers in the order of their launches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u32>", into = "Vec<u32>")]
pub(crate) struct LiveNumbers {
    count: u8,
    numbers: [u32; 2],
}

impl LiveNumbers {
    /// Adds a number; a task has one attempt, or two while one of them is a duplicate.
    pub fn push(&mut self, number: u32) {
        self.numbers[usize::from(self.count)] = number;
        self.count += 1;
    }

    pub fn remove(&mut self, number: u32) {
        if let Some(place) = self.iter().position(|live| *live == number) {
            // Unused entries are zero so that equal lists compare equal.
            self.numbers = [
                if place == 0 {
                    self.numbers[1]
                } else {
                    self.numbers[0]
                },
                0,
            ];
            self.count -= 1;
        }
    }
}

impl Deref for LiveNumbers {
    type Target = [u32];
    fn deref(&self) -> &[u32] {
        &self.numbers[..usize::from(self.count)]
    }
}

impl From<LiveNumbers> for Vec<u32> {
    fn from(live: LiveNumbers) -> Vec<u32> {
        live.to_vec()
    }
}

impl TryFrom<Vec<u32>> for LiveNumbers {
    type Error = String;
    fn try_from(numbers: Vec<u32>) -> Result<LiveNumbers, String> {
        let mut live = LiveNumbers::default();
        if numbers.len() > live.numbers.len() {
            return Err(format!(
                "{} live attempts at one task (limit 2)",
                numbers.len()
            ));
        }
        for number in numbers {
            live.push(number);
        }
        Ok(live)
    }
}
