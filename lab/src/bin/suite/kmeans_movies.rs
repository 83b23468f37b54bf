//! One step of k-means over movies: `kmeans-movies INPUT... --output DIR --files PATH#centroids`. The new centroid of a
//! cluster is the member whose similarity is nearest to the mean.

use napreduce::{Emit, Job, Key, Program};
use napreduce_lab::records::{Centroids, Movie, centroid};

/// All similarities of a cluster come before its lines, so that no line has to be kept.
#[derive(Key)]
enum Pass {
    Similarity,
    Line,
}

pub fn kmeans() -> Job {
    let centroids = Centroids::of_side_file();
    Job::text()
        .map(
            move |line: &str, out: &mut Emit<(u32, Pass), (f32, String)>| {
                let (cluster, similarity) = centroids.get().nearest(&Movie::parse(line)?)?;
                out.emit((cluster, Pass::Similarity), (similarity, ""));
                out.emit((cluster, Pass::Line), (similarity, line));
                Ok::<(), String>(())
            },
        )
        .group_by::<u32>()
        .reduce(|cluster, members, out| {
            let mut sum = 0f32;
            let mut count = 0f32;
            let mut nearest: Option<(f32, f32, String)> = None;
            while let Some(((_, pass), (similarity, line))) = members.next_entry() {
                match pass {
                    Pass::Similarity => (sum, count) = (sum + similarity, count + 1.0),
                    Pass::Line => {
                        out.emit(cluster, line);
                        let distance = (similarity - sum / count).abs();
                        if nearest.as_ref().is_none_or(|(least, ..)| distance < *least) {
                            nearest = Some((distance, similarity, line.to_owned()));
                        }
                    }
                }
            }
            if let Some((_, similarity, line)) = nearest {
                out.emit(centroid(cluster, similarity, &line)?, ());
            }
            Ok::<(), String>(())
        })
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about(
            "Assigns each movie to its most similar centroid, and computes the new centroid of each cluster",
        )
        .examples("kmeans-movies movies --output clusters --files first.txt#centroids")
        .main(kmeans)
}
