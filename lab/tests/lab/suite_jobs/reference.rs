//! Single-threaded in-memory implementations of the jobs that share no code with them. Outputs are in the
//! order of one part file.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Returns the texts with the file names that the tests of a job use.
fn named(texts: &[String]) -> impl Iterator<Item = (String, &String)> {
    texts
        .iter()
        .enumerate()
        .map(|(number, text)| (format!("input-{number:04}"), text))
}

pub fn term_vector(texts: &[String]) -> String {
    let mut output = String::new();
    for (document, text) in named(texts) {
        let mut counts: HashMap<&str, u64> = HashMap::new();
        for word in text.split_ascii_whitespace() {
            *counts.entry(word).or_default() += 1;
        }
        let mut frequent: Vec<_> = counts
            .into_iter()
            .filter(|(_, count)| *count >= 10)
            .collect();
        frequent.sort_by(|(word, count), (other, more)| more.cmp(count).then(word.cmp(other)));
        for (word, count) in frequent {
            output += &format!("{document}\t{word}:{count}\n");
        }
    }
    output
}

pub fn inverted_index(texts: &[String]) -> String {
    let mut index: BTreeSet<(&str, String)> = BTreeSet::new();
    for (document, text) in named(texts) {
        index.extend(
            text.split_ascii_whitespace()
                .map(|word| (word, document.clone())),
        );
    }
    index
        .into_iter()
        .map(|(word, document)| format!("{word}\t{document}\n"))
        .collect()
}

pub fn sequence_count(texts: &[String]) -> String {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for (document, text) in named(texts) {
        for line in text.lines() {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            for sequence in words.windows(3) {
                *counts
                    .entry(format!("{}|{document}", sequence.join("|")))
                    .or_default() += 1;
            }
        }
    }
    counts
        .into_iter()
        .map(|(key, count)| format!("{key}\t{count}\n"))
        .collect()
}

pub fn ranked_inverted_index(counts: &str) -> String {
    let mut rows: Vec<(String, Reverse<u64>, String)> = Vec::new();
    for line in counts.lines() {
        let tab = line.rfind('\t').unwrap();
        let bar = line[..tab].rfind('|').unwrap();
        let count = line[tab + 1..].parse().unwrap();
        rows.push((
            line[..bar].to_owned(),
            Reverse(count),
            line[bar + 1..tab].to_owned(),
        ));
    }
    rows.sort();
    rows.iter()
        .map(|(sequence, count, document)| format!("{sequence}\t{}|{document}\n", count.0))
        .collect()
}

pub fn self_join(text: &str) -> String {
    let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines().filter(|line| line.contains(',')) {
        let mut items: Vec<&str> = line.split(',').collect();
        let last = items.pop().unwrap();
        groups
            .entry(items.join(","))
            .or_default()
            .insert(last.to_owned());
    }
    let mut output = String::new();
    for (prefix, items) in groups {
        for one in &items {
            for other in items.iter().filter(|other| *other > one) {
                output += &format!("{prefix}\t{one},{other}\n");
            }
        }
    }
    output
}

pub fn adjacency_list(text: &str, most: usize) -> String {
    let mut lists: BTreeMap<&str, [BTreeSet<&str>; 2]> = BTreeMap::new();
    for line in text.lines() {
        let Some(comma) = line.rfind(',') else {
            continue;
        };
        let from = &line[..comma];
        let to = &line[comma + 1..];
        lists.entry(to).or_default()[0].insert(from);
        lists.entry(from).or_default()[1].insert(to);
    }
    let listed = |set: BTreeSet<&str>| set.into_iter().take(most).collect::<Vec<_>>().join(",");
    let mut output = String::new();
    for (vertex, [from, to]) in lists {
        output += &format!("{vertex}\tfrom{{{}}}:to{{{}}}\n", listed(from), listed(to));
    }
    output
}

/// Parses a movie's number and its reviews.
fn reviews(line: &str) -> (&str, Vec<(u32, u32)>) {
    let colon = line.find(':').unwrap();
    let pairs = line[colon + 1..]
        .split(',')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let under = pair.find('_').unwrap();
            (
                pair[..under].parse().unwrap(),
                pair[under + 1..].parse().unwrap(),
            )
        });
    (&line[..colon], pairs.collect())
}

pub fn histogram_movies(text: &str) -> String {
    let mut bins: BTreeMap<u64, u64> = BTreeMap::new();
    for line in text.lines() {
        let (_, reviews) = reviews(line);
        if !reviews.is_empty() {
            let mean = reviews
                .iter()
                .map(|(_, rating)| f64::from(*rating))
                .sum::<f64>()
                / reviews.len() as f64;
            let end = mean.floor() + if mean - mean.floor() < 0.5 { 0.5 } else { 1.0 };
            *bins.entry((end * 10.0) as u64).or_default() += 1;
        }
    }
    bins.iter()
        .map(|(bin, count)| format!("{:.1}\t{count}\n", *bin as f64 / 10.0))
        .collect()
}

pub fn histogram_ratings(text: &str) -> String {
    let mut counts = [0; 6];
    for line in text.lines() {
        reviews(line)
            .1
            .iter()
            .for_each(|(_, rating)| counts[*rating as usize] += 1);
    }
    let given = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    given
        .map(|(rating, count)| format!("{rating}\t{count}\n"))
        .collect()
}

/// Returns each movie's line with its cluster and similarity, in input order.
fn clustered<'t>(text: &'t str, centroids: &str) -> Vec<(usize, f32, &'t str)> {
    let centroids: Vec<HashMap<u32, u32>> = centroids
        .lines()
        .map(|line| {
            reviews(&format!("x:{}", line.split(' ').nth(4).unwrap()))
                .1
                .into_iter()
                .collect()
        })
        .collect();
    let mut members = Vec::new();
    for line in text.lines() {
        let movie = reviews(line).1;
        let mut best = (0, 0.0);
        for (k, centroid) in centroids.iter().enumerate() {
            let shared: Vec<(f32, f32)> = movie
                .iter()
                .filter_map(|(rater, rating)| Some((*rating as f32, *centroid.get(rater)? as f32)))
                .collect();
            let of = |term: fn(&(f32, f32)) -> f32| shared.iter().map(term).sum::<f32>();
            let similarity = of(|(r, c)| r * c) / (of(|(r, _)| r * r) * of(|(_, c)| c * c)).sqrt();
            if similarity > best.1 {
                best = (k, similarity);
            }
        }
        members.push((best.0, best.1, line));
    }
    members
}

pub fn kmeans(text: &str, centroids: &str) -> String {
    let members = clustered(text, centroids);
    let mut output = String::new();
    for k in 0..16 {
        let cluster: Vec<_> = members
            .iter()
            .filter(|(cluster, ..)| *cluster == k)
            .collect();
        let sum = cluster
            .iter()
            .fold(0f32, |sum, (_, similarity, _)| sum + similarity);
        let mean = sum / cluster.len() as f32;
        cluster
            .iter()
            .for_each(|(_, _, line)| output += &format!("{k}\t{line}\n"));
        let distance = |member: &(usize, f32, &str)| (member.1 - mean).abs();
        // The first of several equally near ones.
        let nearest = cluster
            .iter()
            .min_by(|one, other| distance(one).total_cmp(&distance(other)));
        if let Some((_, similarity, line)) = nearest {
            let (movie, reviews) = reviews(line);
            let end = (1000..line.len())
                .find(|at| line.as_bytes()[*at] == b',')
                .unwrap_or(line.len());
            let kept = &line[movie.len() + 1..end];
            output += &format!("{k} {similarity} {movie} {} {kept}\n", reviews.len());
        }
    }
    output
}

pub fn classification(text: &str, centroids: &str) -> String {
    let mut members = clustered(text, centroids);
    members.sort_by_key(|(class, ..)| *class);
    members
        .iter()
        .map(|(class, _, line)| format!("{class}\t{}\n", reviews(line).0))
        .collect()
}

pub fn matches(text: &str, pattern: &str, group: usize) -> String {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let regex = regex::Regex::new(pattern).unwrap();
    for line in text.lines() {
        for captures in regex.captures_iter(line) {
            if let Some(found) = captures.get(group) {
                *counts.entry(found.as_str()).or_default() += 1;
            }
        }
    }
    let mut ranked: Vec<_> = counts
        .into_iter()
        .map(|(found, count)| (Reverse(count), found))
        .collect();
    ranked.sort();
    ranked
        .iter()
        .map(|(count, found)| format!("{}\t{found}\n", count.0))
        .collect()
}
