//! Benchmarks of the data plane alone: a map task's sort and a reduce task's merge.
//!
//! `cargo bench -p napreduce-data [-- NAME...]` runs all figures, or those whose name contains a NAME, interleaved,
//! and prints medians of wall and CPU time. Environment: `ROUNDS` (default 7) and `FOLDER` (default: the system's
//! temporary directory). On a busy machine, compare CPU time.

use std::cell::LazyCell;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use napreduce_data::{
    BlockCompression, Collector, CollectorSettings, Combiner, Partitioning, READ_MAX,
    RecordEncoding, ReduceInput, ReduceSettings, lend,
};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

type Error = Box<dyn std::error::Error>;

const MIB: usize = 1 << 20;
const RECORD: usize = 100;
const WORDS: usize = 8_000_000;

/// One measured operation, with the unit and number of its items.
struct Figure<'a> {
    name: &'static str,
    unit: &'static str,
    count: usize,
    run: Box<dyn FnMut() -> Result<(), Error> + 'a>,
    times: Vec<(f64, f64)>,
}

impl<'a> Figure<'a> {
    fn new(
        name: &'static str,
        unit: &'static str,
        count: usize,
        run: impl FnMut() -> Result<(), Error> + 'a,
    ) -> Figure<'a> {
        Figure {
            name,
            unit,
            count,
            run: Box::new(run),
            times: Vec::new(),
        }
    }

    fn measure(&mut self, counts: bool) -> Result<(), Error> {
        let wall = Instant::now();
        let cpu = cpu_seconds();
        (self.run)()?;
        if counts {
            self.times
                .push((wall.elapsed().as_secs_f64(), cpu_seconds() - cpu));
        }
        Ok(())
    }

    fn print(&self) {
        let mut wall: Vec<f64> = self.times.iter().map(|times| times.0).collect();
        let mut cpu: Vec<f64> = self.times.iter().map(|times| times.1).collect();
        wall.sort_by(f64::total_cmp);
        cpu.sort_by(f64::total_cmp);
        let least = cpu[0];
        let wall = wall[wall.len() / 2];
        let cpu = cpu[cpu.len() / 2];
        let rate = if self.unit == "byte" {
            format!("{:6.0} MB/s", self.count as f64 / cpu / 1e6)
        } else {
            String::from("           ")
        };
        println!(
            "{:28} wall {:9.3} ms   cpu {:9.3} ms (least {:9.3})   {:8.2} ns/{:6} {rate}",
            self.name,
            wall * 1e3,
            cpu * 1e3,
            least * 1e3,
            cpu * 1e9 / self.count as f64,
            self.unit,
        );
    }
}

/// Returns the CPU time of all threads of this process.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

struct Sum;

impl Combiner for Sum {
    type Value = u64;

    fn fold(&self, into: &mut u64, more: u64) {
        *into += more;
    }

    fn encode(&self, value: &u64, into: &mut Vec<u8>) {
        into.extend_from_slice(&value.to_be_bytes());
    }

    fn decode(&self, bytes: &[u8]) -> Result<u64, String> {
        bytes
            .try_into()
            .map(u64::from_be_bytes)
            .map_err(|_| "not a number".to_owned())
    }
}

/// Generates ASCII rows that sort like those of datagen: 10 random printable bytes, then 90 others.
fn rows(bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut rows = vec![b'.'; bytes / RECORD * RECORD];
    for row in rows.chunks_exact_mut(RECORD) {
        row[..10].fill_with(|| random.random_range(0x20..0x7f));
        random.fill(&mut row[10..20]);
    }
    rows
}

/// A text that is already split into words.
struct Text {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Text {
    fn words(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends
            .iter()
            .map(move |&end| &self.bytes[std::mem::replace(&mut start, end as usize)..end as usize])
    }

    fn first(&self, words: usize) -> Text {
        Text {
            bytes: self.bytes.clone(),
            ends: self.ends[..words].to_vec(),
        }
    }
}

/// Generates words by Zipf's law with exponent 1.05 over a vocabulary of 200,000.
fn text(words: usize) -> Text {
    let mut random = Pcg64::seed_from_u64(42);
    let vocabulary: Vec<Vec<u8>> = (0..200_000)
        .map(|_| {
            (0..random.random_range(2..12))
                .map(|_| random.random_range(b'a'..=b'z'))
                .collect()
        })
        .collect();
    let mut sum = 0.0;
    let cumulated: Vec<f64> = (1..=vocabulary.len())
        .map(|rank| {
            sum += (rank as f64).powf(-1.05);
            sum
        })
        .collect();
    let mut text = Text {
        bytes: Vec::new(),
        ends: Vec::new(),
    };
    for _ in 0..words {
        let at = random.random_range(0.0..sum);
        text.bytes
            .extend_from_slice(&vocabulary[cumulated.partition_point(|&below| below < at)]);
        text.ends.push(text.bytes.len() as u32);
    }
    text
}

fn settings(folder: &Path, name: &str, memory: usize) -> CollectorSettings {
    CollectorSettings::new(memory, folder, folder.join(name), "job_0001_m_0000.1")
}

fn tera_settings(folder: &Path, name: &str, memory: usize) -> CollectorSettings {
    let cuts = [0x38u8, 0x4f, 0x67].map(|first| vec![first]).to_vec();
    CollectorSettings {
        encoding: RecordEncoding::Fixed { key: 10, value: 90 },
        partitioning: Partitioning::Range {
            cuts,
            grouping: None,
        },
        ..settings(folder, name, memory)
    }
}

fn sort_rows(settings: CollectorSettings, rows: &[u8]) -> Result<(), Error> {
    let output = settings.output.clone();
    let mut collector: Collector<()> = Collector::plain(settings)?;
    for row in rows.chunks_exact(RECORD) {
        collector.emit_bytes(&row[..10], &row[10..]);
    }
    collector.finish()?;
    std::fs::remove_file(output)?;
    Ok(())
}

fn emit_rows(settings: CollectorSettings, rows: &[u8]) -> Result<(), Error> {
    let mut collector: Collector<()> = Collector::plain(settings)?;
    for row in rows.chunks_exact(RECORD) {
        collector.emit_bytes(&row[..10], &row[10..]);
    }
    Ok(collector.check()?)
}

fn reduce_settings(folder: &Path, segments: Vec<PathBuf>, partition: u32) -> ReduceSettings {
    ReduceSettings {
        consolidated: Vec::new(),
        segments,
        partition,
        memory: 256 * MIB,
        scratch: folder.to_owned(),
        label: "job_0001_r_0000.1".into(),
        fan_in: 64,
        read_max: READ_MAX,
        grouping: None,
        resume: None,
    }
}

/// Seals `count` segments of random rows and returns their paths.
fn sealed_rows(folder: &Path, count: usize) -> Result<Vec<PathBuf>, Error> {
    let mut segments = Vec::new();
    for index in 0..count {
        let mut settings = tera_settings(folder, &format!("rows-{index}"), 64 * MIB);
        settings.partitioning = Partitioning::Single;
        segments.push(settings.output.clone());
        let mut collector: Collector<()> = Collector::plain(settings)?;
        for row in rows(64 * MIB / count, index as u64).chunks_exact(RECORD) {
            collector.emit_bytes(&row[..10], &row[10..]);
        }
        collector.finish()?;
    }
    Ok(segments)
}

fn merge(settings: ReduceSettings) -> Result<(), Error> {
    let mut input = ReduceInput::open(settings)?;
    let mut sum = 0u64;
    while input.next_group()? {
        while let Some((key, value)) = input.next_value()? {
            sum += u64::from(key[0]) + u64::from(value[0]) + value.len() as u64;
        }
    }
    black_box(sum);
    Ok(())
}

fn count_words(folder: &Path, text: &Text) -> Result<(), Error> {
    let mut collector = Collector::combining(settings(folder, "words", 256 * MIB), Sum)?;
    lend(&text.bytes, || {
        text.words()
            .for_each(|word| collector.emit_value(word, 1, 0))
    });
    let (sealed, _) = collector.finish()?;
    std::fs::remove_file(sealed.path)?;
    Ok(())
}

fn sort_words(folder: &Path, text: &Text, compression: BlockCompression) -> Result<(), Error> {
    let settings = CollectorSettings {
        compression,
        ..settings(folder, "words", 256 * MIB)
    };
    let mut collector: Collector<()> = Collector::plain(settings)?;
    for word in text.words() {
        collector.emit_bytes(word, b"\0\0\0\0\0\0\0\x01");
    }
    let (sealed, _) = collector.finish()?;
    std::fs::remove_file(sealed.path)?;
    Ok(())
}

fn emit_words(folder: &Path, text: &Text) -> Result<(), Error> {
    let mut collector: Collector<()> = Collector::plain(settings(folder, "words", 256 * MIB))?;
    for word in text.words() {
        collector.emit_bytes(word, b"\0\0\0\0\0\0\0\x01");
    }
    Ok(collector.check()?)
}

/// Runs the smallest job: a map task with one record, and the reduce task that reads it.
fn tiny(folder: &Path) -> Result<(), Error> {
    let mut collector = Collector::combining(settings(folder, "tiny", 256 * MIB), Sum)?;
    collector.emit_value(b"word", 1, 0);
    let (sealed, _) = collector.finish()?;
    merge(reduce_settings(folder, vec![sealed.path.clone()], 0))?;
    std::fs::remove_file(sealed.path)?;
    Ok(())
}

fn main() -> Result<(), Error> {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let rounds: usize = std::env::var("ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(7);
    let place = match std::env::var_os("FOLDER") {
        Some(folder) => tempfile::tempdir_in(folder)?,
        None => tempfile::tempdir()?,
    };
    let folder = place.path();
    // Generated on first use.
    let rows = LazyCell::new(|| rows(64 * MIB, 7));
    let text = LazyCell::new(|| text(WORDS));
    let few_words = LazyCell::new(|| text.first(WORDS / 8));
    let segments = LazyCell::new(|| sealed_rows(folder, 16));
    let reduce = |fan_in| match &*segments {
        Ok(segments) => merge(ReduceSettings {
            fan_in,
            ..reduce_settings(folder, segments.clone(), 0)
        }),
        Err(error) => Err(error.to_string().into()),
    };
    let bytes = 64 * MIB / RECORD * RECORD;
    let mut figures = vec![
        Figure::new("look at words only", "word", WORDS, || {
            black_box(text.words().fold(0, |sum, word| sum ^ word.len()));
            Ok(())
        }),
        Figure::new("combine words, emit only", "word", WORDS, || {
            let mut collector = Collector::combining(settings(folder, "words", 256 * MIB), Sum)?;
            lend(&text.bytes, || {
                text.words()
                    .for_each(|word| collector.emit_value(word, 1, 0))
            });
            Ok(collector.check()?)
        }),
        Figure::new("combine words", "word", WORDS, || {
            count_words(folder, &text)
        }),
        Figure::new("emit words", "word", WORDS / 8, || {
            emit_words(folder, &few_words)
        }),
        Figure::new("sort words", "word", WORDS / 8, || {
            sort_words(folder, &few_words, BlockCompression::None)
        }),
        Figure::new("sort words lz4", "word", WORDS / 8, || {
            sort_words(folder, &few_words, BlockCompression::Lz4)
        }),
        Figure::new("emit rows", "byte", bytes, || {
            emit_rows(tera_settings(folder, "rows", 256 * MIB), &rows)
        }),
        Figure::new("sort rows", "byte", bytes, || {
            sort_rows(tera_settings(folder, "rows", 256 * MIB), &rows)
        }),
        Figure::new("spill rows", "byte", bytes, || {
            sort_rows(tera_settings(folder, "rows", 24 * MIB), &rows)
        }),
        Figure::new("merge 16 segments", "byte", bytes, || reduce(64)),
        Figure::new("merge 16 segments by 4", "byte", bytes, || reduce(4)),
        Figure::new("tiny job", "job", 1, || tiny(folder)),
    ];
    figures.retain(|figure| {
        wanted.is_empty()
            || wanted
                .iter()
                .any(|name| figure.name.contains(name.as_str()))
    });
    // The first round generates the data and warms up; it does not count.
    for round in 0..=rounds {
        for figure in &mut figures {
            figure.measure(round > 0)?;
        }
    }
    for figure in &figures {
        figure.print();
    }
    Ok(())
}
