//! The movies of each class: `classification INPUT... --output DIR --files PATH#centroids`. The class of a movie is its
//! most similar centroid.

use napreduce::{Emit, Job, Program};
use napreduce_lab::records::{Centroids, Movie};

pub fn classification() -> Job {
    let centroids = Centroids::of_side_file();
    Job::text()
        .map(move |line: &str, out: &mut Emit<u32, String>| {
            let movie = Movie::parse(line)?;
            let (class, _) = centroids.get().nearest(&movie)?;
            out.emit(class, movie.id);
            Ok::<(), String>(())
        })
        .reduce(|class, movies, out| {
            while let Some(movie) = movies.next() {
                out.emit(class, movie);
            }
        })
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Puts each movie into the class of the centroid that it is most similar to")
        .examples("classification movies --output classes --files first.txt#centroids")
        .main(classification)
}
