//! Parser of the progress output of Hadoop's client.

/// The content of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ClientLine {
    /// The id that Hadoop gave the job.
    Job(String),
    /// Progress of maps and reduces in percent.
    Percent {
        maps: u32,
        reduces: u32,
    },
    /// Number of failed attempts of the kind.
    FailedMaps(u64),
    FailedReduces(u64),
}

/// Parses a line; returns `None` for any other text.
pub(super) fn parse(line: &str) -> Option<ClientLine> {
    if let Some((_, id)) = line.split_once("Running job: ") {
        return Some(ClientLine::Job(id.trim().to_owned()));
    }
    if let Some((_, id)) = line.split_once("Failed map tasks=") {
        return id.trim().parse().ok().map(ClientLine::FailedMaps);
    }
    if let Some((_, id)) = line.split_once("Failed reduce tasks=") {
        return id.trim().parse().ok().map(ClientLine::FailedReduces);
    }
    let (_, rest) = line.split_once(" map ")?;
    let (maps, rest) = rest.trim_start().split_once("% reduce ")?;
    let reduces = rest.trim().strip_suffix('%')?;
    Some(ClientLine::Percent {
        maps: maps.parse().ok()?,
        reduces: reduces.parse().ok()?,
    })
}

/// Estimates the number of completed tasks from a percentage; in Hadoop's figure running tasks count by their
/// progress.
pub(super) fn done(tasks: u32, percent: u32) -> u32 {
    u32::try_from(u64::from(tasks) * u64::from(percent.min(100)) / 100).unwrap_or(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_progress_lines_are_parsed() {
        for (line, expected) in [
            (
                "26/11/26 10:00:00 INFO mapreduce.Job: Running job: job_1_0001",
                ClientLine::Job("job_1_0001".to_owned()),
            ),
            (
                "INFO mapreduce.Job:  map 50% reduce 0%",
                ClientLine::Percent {
                    maps: 50,
                    reduces: 0,
                },
            ),
            (
                "mapred.JobClient:  map 100% reduce 33%",
                ClientLine::Percent {
                    maps: 100,
                    reduces: 33,
                },
            ),
            ("\t\tFailed map tasks=2", ClientLine::FailedMaps(2)),
            ("\t\tFailed reduce tasks=1", ClientLine::FailedReduces(1)),
        ] {
            assert_eq!(parse(line), Some(expected), "{line}");
        }
        for line in [
            "",
            "the map is 50% reduced",
            " map x% reduce 0%",
            "Failed map tasks=many",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
        assert_eq!(
            (done(3, 0), done(3, 50), done(3, 100), done(7, 999)),
            (0, 1, 3, 7)
        );
    }
}
