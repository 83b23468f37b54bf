//! Empty: only the features of the dependencies matter.

fn main() {}
