//! The input stream of a reduce: the frames of each map in order, interleaved at random, or a stream that
//! violates one rule of the protocol.

use std::collections::BTreeMap;

use super::frames::Frame;

/// Returns the stream of a reduce that violates this rule; a valid stream for an empty name.
pub fn broken(
    rule: &str,
    of_maps: BTreeMap<u32, Vec<Frame>>,
    below: impl FnMut(usize) -> usize,
) -> Vec<u8> {
    let mut frames = mixed(of_maps, below);
    if !rule.is_empty() {
        break_order(rule, &mut frames);
    }
    let mut stream = Vec::new();
    frames.iter().for_each(|frame| frame.write(&mut stream));
    match rule {
        "cut short" => stream.truncate(stream.len() - 1),
        // The length of the first frame: 64 MiB and more.
        "too long" => stream[12] = 5,
        _ => {}
    }
    stream
}

/// Violates a rule about whole frames: the first report, extent or chunk, or all frames of its map.
fn break_order(rule: &str, frames: &mut Vec<Frame>) {
    let find = |is: fn(&Frame) -> bool| {
        frames
            .iter()
            .position(is)
            .unwrap_or_else(|| panic!("no frame for {rule}"))
    };
    let report = find(Frame::is_report);
    let extent = find(Frame::is_extent);
    let chunk = find(Frame::is_chunk);
    let of_map = frames[chunk].map;
    let reports = frames[report].map;
    let last = frames
        .iter()
        .rposition(|frame| frame.is_chunk() && frame.map == of_map)
        .unwrap_or(chunk);
    match rule {
        "second extent" => {
            let first = frames
                .iter()
                .find(|frame| frame.is_extent() && frame.map == of_map)
                .cloned();
            frames.insert(chunk + 1, first.expect("a chunk follows an extent"));
        }
        "missing extent" => {
            frames.remove(extent);
        }
        "missing frame" => {
            assert!(last > chunk, "a map has one chunk only; make them shorter");
            frames.remove(chunk);
        }
        "missing end" => {
            frames.remove(last);
        }
        "frame after report" => {
            let first = frames
                .iter()
                .position(|frame| frame.map == reports)
                .unwrap_or(report);
            let moved = frames.remove(report);
            frames.insert(first + 1, moved);
        }
        "second report" => frames.push(frames[report].clone()),
        "missing report" => {
            frames.remove(report);
        }
        // The report of one reduce names map 1; with two reduces the other one is correct.
        "other report" => frames[report].map = 1,
        "other partition" => frames[extent].partition += 1,
        "unknown map" => frames[extent].map = 9_999,
        "bad block" => frames[chunk].payload[0] ^= 1,
        "bad extent" => frames[extent].payload[9] ^= 1,
        "lost" => frames.retain(|frame| frame.is_report() || frame.map != of_map),
        _ => {}
    }
}

fn mixed(
    mut of_maps: BTreeMap<u32, Vec<Frame>>,
    mut below: impl FnMut(usize) -> usize,
) -> Vec<Frame> {
    let mut mixed = Vec::new();
    of_maps.values_mut().for_each(|frames| frames.reverse());
    while !of_maps.is_empty() {
        let at = below(of_maps.len());
        let map = *of_maps.keys().nth(at).expect("there are so many");
        let frames = of_maps.get_mut(&map).expect("it is there");
        mixed.extend(frames.pop());
        if frames.is_empty() {
            of_maps.remove(&map);
        }
    }
    mixed
}
