//! Owns the data of the suite: each kind made once, in a folder of its own, for all jobs that read it.
//! How data look belongs to datagen.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use datagen::associations::{self, AssociationsSettings};
use datagen::centroids::{self, CentroidsSettings};
use datagen::graph::{self, GraphSettings};
use datagen::movies::{self, MoviesSettings};
use datagen::output::{FileNames, OutputSettings};
use datagen::rows::Amount;
use datagen::tera::{self, RECORD_BYTES, TeraSettings};
use datagen::text::{self, TextSettings};
use napreduce_engine::listed;
use napreduce_live::ByteSize;

use super::jobs::SuiteJob;
use crate::error::LabError;
use crate::input::GeneratedInputError;
use crate::process::{Sampling, run};
use crate::program::Resources;
use crate::session::Session;
use crate::workspace::WorkFolder;

/// How many documents the text is divided into.
const DOCUMENTS: u32 = 16;
/// The most centroids; small data have fewer movies.
const CENTROIDS: [u32; 3] = [16, 4, 1];

listed! {
    /// A kind of data.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub(super) enum SuiteData {
        Documents = "documents",
        Rows = "rows",
        Movies = "movies",
        Associations = "associations",
        Edges = "edges",
        /// What sequence-count makes of the documents.
        Sequences = "sequences",
    }
}

/// A folder of files, and the bytes in them.
#[derive(Clone, Debug)]
pub(super) struct SuiteInput {
    pub(super) folder: PathBuf,
    pub(super) bytes: ByteSize,
}

/// All data of a run.
#[derive(Debug)]
pub(super) struct SuiteInputs {
    made: BTreeMap<SuiteData, SuiteInput>,
    pub(super) centroids: PathBuf,
}

impl SuiteInputs {
    /// Makes what `jobs` read, about `size` of each kind.
    pub(super) fn make(
        jobs: &[SuiteJob],
        size: ByteSize,
        resources: Resources,
        work: &WorkFolder,
        session: &Session,
    ) -> Result<SuiteInputs, LabError> {
        let mut inputs = SuiteInputs { made: BTreeMap::new(), centroids: work.path().join("centroids.txt") };
        for job in jobs {
            let data = job.data();
            if data == SuiteData::Sequences {
                inputs.make_one(SuiteData::Documents, size, work, session)?;
                inputs.count_sequences(resources, work, session)?;
            } else {
                inputs.make_one(data, size, work, session)?;
            }
        }
        Ok(inputs)
    }

    pub(super) fn of(&self, job: SuiteJob) -> Option<&SuiteInput> {
        self.made.get(&job.data())
    }

    fn make_one(
        &mut self,
        data: SuiteData,
        size: ByteSize,
        work: &WorkFolder,
        session: &Session,
    ) -> Result<(), LabError> {
        if self.made.contains_key(&data) {
            return Ok(());
        }
        session.say(format!("making {} of {}", size.rounded(), data.in_words()));
        let folder = work.path().join(data.in_words());
        let output = OutputSettings { watch: session.interrupt.watch(), ..OutputSettings::new(&folder) };
        let bytes = generate(data, size.bytes(), output);
        // An interrupt is one kind of error, whoever noticed it first.
        session.interrupt.check()?;
        let input = SuiteInput { folder, bytes: ByteSize::new(bytes?) };
        if data == SuiteData::Movies {
            self.draw_centroids(&input.folder, session)?;
        }
        self.made.insert(data, input);
        Ok(())
    }

    /// As many centroids as there may be movies for.
    fn draw_centroids(&self, movies: &Path, session: &Session) -> Result<(), LabError> {
        let draw = |clusters| {
            centroids::generate(&CentroidsSettings {
                movies: vec![movies.to_owned()],
                clusters,
                seed: 42,
                file: self.centroids.clone(),
                overwrite: false,
                watch: session.interrupt.watch(),
            })
        };
        let [most, some, one] = CENTROIDS;
        let drawn = draw(most).or_else(|_| draw(some)).or_else(|_| draw(one));
        session.interrupt.check()?;
        Ok(drawn.map_err(GeneratedInputError::from)?)
    }

    fn count_sequences(
        &mut self,
        resources: Resources,
        work: &WorkFolder,
        session: &Session,
    ) -> Result<(), LabError> {
        let job = SuiteJob::SequenceCount;
        let (Some(documents), false) = (self.of(job), self.made.contains_key(&SuiteData::Sequences)) else {
            return Ok(());
        };
        session.say("counting sequences for ranked-inverted-index");
        let folder = work.fresh("run")?;
        let output = work.path().join(SuiteData::Sequences.in_words());
        let places = (documents.folder.as_path(), self.centroids.as_path());
        let command =
            job.command(&job.binary(&session.binaries)?, places, &output, resources, resources.slots);
        run(&command, &folder, Sampling::Off, &session.interrupt)?;
        let bytes = ByteSize::new(super::lines::LineSet::of(&output)?.bytes);
        self.made.insert(SuiteData::Sequences, SuiteInput { folder: output, bytes });
        Ok(())
    }
}

fn generate(data: SuiteData, bytes: u64, output: OutputSettings) -> Result<u64, GeneratedInputError> {
    let amount = Amount::Bytes(bytes);
    let written = match data {
        SuiteData::Documents | SuiteData::Sequences => {
            let output = OutputSettings { files: DOCUMENTS, names: FileNames::Documents, ..output };
            text::generate(&TextSettings::new(bytes, output))?
        }
        SuiteData::Rows => {
            let records = bytes / RECORD_BYTES as u64;
            tera::generate(&TeraSettings { records, start: 0, format: tera::Format::Ascii, output })?
        }
        SuiteData::Movies => movies::generate(&MoviesSettings::new(amount, output))?,
        SuiteData::Associations => associations::generate(&AssociationsSettings::new(amount, output))?,
        SuiteData::Edges => graph::generate(&GraphSettings::new(amount, output))?,
    };
    Ok(written.bytes)
}
