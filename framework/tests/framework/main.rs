//! Jobs, codecs, inputs and outputs through the public API. Tests that need a program of their own are next
//! to this folder: `preemption_counters` reads counters of the whole process, and `formats` needs features.

mod bad_records;
mod codec_bytes;
mod codec_derive;
mod codec_properties;
mod flat_map;
mod folds;
mod frames;
mod in_memory;
mod input_compressed;
mod input_lines;
mod input_places;
mod input_records;
mod joins;
mod key_vectors;
mod named_outputs;
mod preemption;
mod preemption_flush;
mod preemption_kit;
mod preemption_state;
mod resumable;
mod serde_values;
mod several_inputs;
mod small_files;
mod streaming;
mod text_records;
mod typed_records;
