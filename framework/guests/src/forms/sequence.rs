//! Rules for the order of frames in a reduce: those of its partition, and the reports of some maps. Maps may
//! be interleaved in any order; the frames of one map are in sequence. Reduce `m mod reduces` receives the
//! report of map `m`, after the frames of that map.

use std::collections::{BTreeMap, BTreeSet};

use super::frames::{GuestFrame, GuestFrameError};

/// The content of an accepted frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestFrameKind {
    /// Position and description of a map's blocks.
    Extent,
    /// Bytes of its blocks.
    Chunk,
    /// The counters of the map.
    Report,
}

/// The checked sequence of frames of one reduce.
#[derive(Debug)]
pub struct GuestFrameSequence {
    partition: u32,
    maps: u32,
    reduces: u32,
    /// The next number for each map that has begun.
    next: BTreeMap<u32, u32>,
    reported: BTreeSet<u32>,
}

impl GuestFrameSequence {
    /// Creates the sequence of one reduce.
    pub fn new(partition: u32, maps: u32, reduces: u32) -> GuestFrameSequence {
        GuestFrameSequence {
            partition,
            maps,
            reduces,
            next: BTreeMap::new(),
            reported: BTreeSet::new(),
        }
    }

    /// Accepts the next frame.
    ///
    /// # Errors
    /// Fails with the violated rule.
    pub fn accept(&mut self, frame: &GuestFrame) -> Result<GuestFrameKind, GuestFrameError> {
        let GuestFrame {
            partition,
            map,
            number,
            ..
        } = *frame;
        if map >= self.maps {
            return Err(GuestFrameError::UnknownMap {
                map,
                maps: self.maps,
            });
        }
        if frame.is_report() {
            return self.accept_report(map);
        }
        if partition != self.partition {
            return Err(GuestFrameError::OtherPartition {
                map,
                found: partition,
                own: self.partition,
            });
        }
        if self.reported.contains(&map) {
            return Err(GuestFrameError::AfterReport { map, number });
        }
        match (self.next.get_mut(&map), number) {
            (None, 0) => {
                self.next.insert(map, 1);
                Ok(GuestFrameKind::Extent)
            }
            (None, found) => Err(GuestFrameError::MissingExtent { map, found }),
            (Some(_), 0) => Err(GuestFrameError::SecondExtent { map }),
            (Some(next), number) if number == *next => {
                *next = next.saturating_add(1);
                Ok(GuestFrameKind::Chunk)
            }
            (Some(next), found) => Err(GuestFrameError::MissingFrame {
                map,
                found,
                expected: *next,
            }),
        }
    }

    fn accept_report(&mut self, map: u32) -> Result<GuestFrameKind, GuestFrameError> {
        let taker = map % self.reduces.max(1);
        if taker != self.partition {
            return Err(GuestFrameError::OtherReport {
                map,
                taker,
                own: self.partition,
            });
        }
        if self.reported.insert(map) {
            Ok(GuestFrameKind::Report)
        } else {
            Err(GuestFrameError::SecondReport { map })
        }
    }

    /// Checks at the end that all reports were received.
    ///
    /// # Errors
    /// `MissingReport`.
    pub fn end(&self) -> Result<(), GuestFrameError> {
        let step = usize::try_from(self.reduces.max(1)).unwrap_or(usize::MAX);
        match (self.partition..self.maps)
            .step_by(step)
            .find(|map| !self.reported.contains(map))
        {
            Some(map) => Err(GuestFrameError::MissingReport { map }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks frames of reduce 1 of 3 with 6 maps: it takes the reports of maps 1 and 4.
    fn taken(frames: &[(u32, u32, u32)]) -> Result<(), String> {
        let mut sequence = GuestFrameSequence::new(1, 6, 3);
        let reports = [(u32::MAX, 1, 0), (u32::MAX, 4, 0)];
        let given = |map| {
            frames
                .iter()
                .any(|frame| frame.0 == u32::MAX && frame.1 == map)
        };
        let others = reports.iter().filter(|(_, map, _)| !given(*map));
        for (partition, map, number) in frames.iter().chain(others) {
            let frame = GuestFrame {
                partition: *partition,
                map: *map,
                number: *number,
                length: 0,
            };
            sequence.accept(&frame).map_err(|error| error.to_string())?;
        }
        sequence.end().map_err(|error| error.to_string())
    }

    #[track_caller]
    fn broken(rule: &str, frames: &[(u32, u32, u32)]) {
        let error = taken(frames).expect_err(rule);
        assert!(error.starts_with(&format!("{rule}: ")), "{error}");
    }

    #[test]
    fn map_frames_may_be_interleaved() {
        assert_eq!(taken(&[]), Ok(()));
        assert_eq!(
            taken(&[
                (1, 5, 0),
                (1, 0, 0),
                (1, 5, 1),
                (1, 0, 1),
                (1, 5, 2),
                (u32::MAX, 4, 0)
            ]),
            Ok(())
        );
    }

    #[test]
    fn sequence_violations_are_named() {
        broken("other partition", &[(2, 0, 0)]);
        broken("unknown map", &[(1, 6, 0)]);
        broken("missing extent", &[(1, 0, 1)]);
        broken("second extent", &[(1, 0, 0), (1, 0, 0)]);
        broken("missing frame", &[(1, 0, 0), (1, 0, 2)]);
        broken("missing frame", &[(1, 0, 0), (1, 0, 1), (1, 0, 1)]);
        broken(
            "frame after report",
            &[(1, 4, 0), (u32::MAX, 4, 0), (1, 4, 1)],
        );
        broken("second report", &[(u32::MAX, 4, 0), (u32::MAX, 4, 0)]);
        broken("other report", &[(u32::MAX, 3, 0)]);
        let none = GuestFrameSequence::new(1, 6, 3)
            .end()
            .expect_err("no report has come");
        assert_eq!(none.to_string(), "missing report: map 1 sent none");
        assert!(
            GuestFrameSequence::new(1, 1, 3).end().is_ok(),
            "no map reports here"
        );
    }
}
