//! Jobs, codecs, inputs and outputs as a user of the crate has them: every name is public.
//!
//! Beside this folder are programs of their own: `mistakes` runs cargo in a workspace that it makes,
//! `preemption_counters` looks at counters that a whole process has, and `formats` is behind features.

mod bad_records;
mod codec_bytes;
mod codec_derive;
mod codec_properties;
mod frames;
mod input_compressed;
mod input_lines;
mod input_places;
mod input_records;
mod key_vectors;
mod named_outputs;
mod preemption;
mod preemption_flush;
mod preemption_kit;
mod preemption_state;
mod several_inputs;
mod small_files;
mod streaming;
mod text_records;
mod typed_records;
