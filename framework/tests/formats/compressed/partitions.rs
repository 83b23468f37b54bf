//! Random layouts of the same content: empty members, frames and blocks, and the data that a format allows
//! between them. The seed determines the layout. The result must equal that of the common tools.

use super::*;

const CASES: u64 = 30;
const SIZES: [u64; 6] = [1, 2, 7, 40, 333, 5000];

/// A seeded choice (xorshift).
struct Choice(u64);

impl Choice {
    fn new(seed: u64) -> Choice {
        Choice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, most: u64) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % most).expect("a small number")
    }

    /// The content in pieces: some are empty, some part of a line, some several lines.
    fn pieces(&mut self) -> Vec<Vec<u8>> {
        let piece = |choice: &mut Choice| match choice.below(5) {
            0 | 1 => Vec::new(),
            2 => b"ab\nc"[..=choice.below(4)].to_vec(),
            3 => vec![b'x'; choice.below(300)],
            _ => content(choice.below(60) as u64),
        };
        (0..=self.below(7)).map(|_| piece(self)).collect()
    }
}

/// How the parts of a file are made, and what may lie between them.
struct Format<'a> {
    name: &'a str,
    /// A member, stream or frame with this content.
    part: &'a dyn Fn(&mut Choice, &[u8]) -> Vec<u8>,
    /// Padding at an offset of the file, in pieces.
    padding: &'a dyn Fn(&mut Choice, usize) -> Vec<Vec<u8>>,
    /// Whether the file may begin with padding.
    begins_with_padding: bool,
    /// A file that is truncated at a multiple of this many bytes in a piece of zeros is valid.
    zeros_unit: usize,
}

impl<'a> Format<'a> {
    fn unpadded(name: &'a str, part: &'a dyn Fn(&mut Choice, &[u8]) -> Vec<u8>) -> Self {
        Format {
            name,
            part,
            padding: &|_, _| Vec::new(),
            begins_with_padding: false,
            zeros_unit: 0,
        }
    }
}

/// A file, and the offsets at which truncation cannot be detected.
#[derive(Default)]
struct Layout {
    bytes: Vec<u8>,
    content: Vec<u8>,
    ends: Vec<usize>,
    /// The offsets before, between and after the parts, without the padding there.
    seams: Vec<usize>,
}

impl Layout {
    fn draw(format: &Format<'_>, seed: u64) -> Layout {
        let mut choice = Choice::new(seed);
        let pieces = choice.pieces();
        let mut layout = Layout {
            content: pieces.concat(),
            ends: vec![0],
            ..Layout::default()
        };
        if format.begins_with_padding {
            layout.pad(format, &mut choice);
        }
        for content in &pieces {
            let part = (format.part)(&mut choice, content);
            layout.bytes.extend(part);
            layout.seams.push(layout.bytes.len());
            layout.ends.push(layout.bytes.len());
            layout.pad(format, &mut choice);
        }
        layout
    }

    fn pad(&mut self, format: &Format<'_>, choice: &mut Choice) {
        for padding in (format.padding)(choice, self.bytes.len()) {
            let start = self.bytes.len();
            let end = start + padding.len();
            if format.zeros_unit > 0 && padding.iter().all(|byte| *byte == 0) {
                self.ends.extend((start..end).step_by(format.zeros_unit));
            }
            self.bytes.extend(padding);
            self.ends.push(end);
        }
    }
}

/// Zeros of any length, often those after which the next part begins near the end of a reader's buffer.
fn zeros(choice: &mut Choice, at: usize) -> Vec<u8> {
    let length = match choice.below(8) {
        0 | 1 => 0,
        2 => 1 + choice.below(4),
        3 => 508 + choice.below(8),
        4 => choice.below(200_000),
        5 => [choice.below(1000), 1 << 20][choice.below(6) / 5],
        _ => {
            let buffer = [4 << 10, 8 << 10, 32 << 10, 64 << 10][choice.below(4)];
            let up_to_its_end = buffer - at % buffer;
            (up_to_its_end + choice.below(7)).saturating_sub(4)
        }
    };
    vec![0; length]
}

/// Zero to two pieces of data that the format allows between its parts.
fn some(choice: &mut Choice, mut one: impl FnMut(&mut Choice) -> Vec<u8>) -> Vec<Vec<u8>> {
    (0..choice.below(3)).map(|_| one(choice)).collect()
}

/// Returns the lines of all splits of this size; if `resume`, with a new reader after each batch.
fn lines_cut(file: &TestFile, size: u64, resume: bool) -> Result<Vec<String>, InputError> {
    let pieces = if ByteLines.splittable(&file.path) {
        file.pieces(size.max(file.size / 64))
    } else {
        vec![file.whole()]
    };
    let read = pieces
        .iter()
        .map(|piece| read(&ByteLines, piece, resume, show));
    Ok(read.collect::<Result<Vec<_>, _>>()?.concat())
}

/// Data that is neither padding nor the start of a part in any format.
const RUBBISH: [&[u8]; 5] = [
    b"x",
    b"garbage\nof several lines\n",
    &[0xff; 40],
    &[0x50; 70_000],
    b"\0\0\0\0\x1f\x8a\x08",
];

/// A layout is read correctly at every split size. Truncated files and files with rubbish between or after
/// their parts lose no lines without an error.
fn check(name: &str, seed: u64, layout: &Layout) {
    let Layout {
        bytes,
        content,
        ends,
        seams,
    } = layout;
    let expected = lines_of(content);
    let file = TestFile::new(name, bytes);
    for size in SIZES {
        let lines = lines_cut(&file, size, false)
            .unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}"));
        assert!(
            lines == expected,
            "{name}, seed {seed}: {} lines of {}",
            lines.len(),
            expected.len()
        );
    }
    let resumed =
        lines_cut(&file, 333, true).unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}"));
    assert!(
        resumed == expected,
        "{name}, seed {seed}: {} lines of {}",
        resumed.len(),
        expected.len()
    );
    let mut choice = Choice::new(seed ^ 0xABCD);
    for _ in 0..12 {
        let cut = choice.below(bytes.len() as u64 + 1);
        let file = TestFile::new(name, &bytes[..cut]);
        let is_seen = lines_cut(&file, 333, false).is_err();
        assert!(
            is_seen || ends.contains(&cut),
            "{name}, seed {seed}: cut at byte {cut} is taken for whole"
        );
    }
    for rubbish in RUBBISH {
        let seam = seams[choice.below(seams.len() as u64)];
        for at in [seam, bytes.len()] {
            let file = TestFile::new(name, [&bytes[..at], rubbish, &bytes[at..]].concat());
            if let Ok(lines) = lines_cut(&file, 333, false) {
                assert!(
                    lines == expected,
                    "{name}, seed {seed}: {rubbish:?} at byte {at} hides lines"
                );
            }
        }
    }
}

/// Checks many layouts, and decompresses all of them with Python, whose function `decompress` is in `script`.
fn check_all(format: &Format<'_>, packages: &[&str], script: &str) {
    let name = format.name;
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut contents = Vec::new();
    for seed in 1..=CASES {
        let layout = Layout::draw(format, seed);
        check(name, seed, &layout);
        fs::write(folder.path().join(format!("{seed}.in")), &layout.bytes).expect("a written file");
        contents.push(layout.content);
    }
    let script = format!(
        "import subprocess\n{script}\nfor number in range(1, {CASES} + 1):\n    data = open(f\"{{number}}.in\", \
         \"rb\").read()\n    open(f\"{{number}}.out\", \"wb\").write(decompress(data))\n"
    );
    if python(packages, &script, folder.path()).is_none() {
        return;
    }
    for (content, seed) in contents.iter().zip(1..) {
        let theirs = fs::read(folder.path().join(format!("{seed}.out"))).expect("Python wrote it");
        assert!(
            theirs == *content,
            "{name}, seed {seed}: others read other bytes"
        );
    }
}

/// Returns a program that decompresses standard input with the function `decompress` of a script.
fn by_program(program: &str) -> String {
    format!(
        "def decompress(data):\n    return subprocess.run([\"{program}\", \"-dc\"], input=data, check=True, \
         capture_output=True).stdout"
    )
}

/// A skippable frame, which zstd and lz4 allow.
fn skippable(choice: &mut Choice) -> Vec<u8> {
    let magic = 0x184D_2A50_u32 + choice.below(16) as u32;
    let length = [choice.below(50), choice.below(200_000)][choice.below(2)];
    [
        &magic.to_le_bytes()[..],
        &(length as u32).to_le_bytes(),
        &vec![0x28; length],
    ]
    .concat()
}

#[test]
fn gzip_members_and_padding_match_python() {
    let member = |choice: &mut Choice, content: &[u8]| {
        let builder = flate2::GzBuilder::new();
        let builder = if choice.below(2) == 0 {
            builder.filename("a")
        } else {
            builder
        };
        let level = flate2::Compression::new(choice.below(10) as u32);
        let mut encoder = builder.write(Vec::new(), level);
        encoder.write_all(content).expect("a Vec takes every write");
        encoder.finish().expect("a Vec takes every write")
    };
    let padding = |choice: &mut Choice, at: usize| vec![zeros(choice, at)];
    let format = Format {
        padding: &padding,
        zeros_unit: 1,
        ..Format::unpadded("a.gz", &member)
    };
    check_all(
        &format,
        &["gzip"],
        "import gzip\ndecompress = gzip.decompress",
    );
}

#[test]
fn zstd_frames_match_zstd() {
    let frame = |choice: &mut Choice, content: &[u8]| {
        let by_program = |level| {
            filtered("zstd", &["-c", level, "--no-check"], content, "zstd").unwrap_or_default()
        };
        match choice.below(3) {
            0 => by_program("-1"),
            1 => by_program("-19"),
            _ => ruzstd::encoding::compress_to_vec(
                content,
                ruzstd::encoding::CompressionLevel::Fastest,
            ),
        }
    };
    let padding = |choice: &mut Choice, _: usize| some(choice, skippable);
    let format = Format {
        padding: &padding,
        begins_with_padding: true,
        ..Format::unpadded("a.zst", &frame)
    };
    if filtered("zstd", &["-c"], b"", "zstd").is_some() {
        check_all(&format, &["subprocess"], &by_program("zstd"));
    }
}

#[cfg(feature = "bzip2")]
#[test]
fn bzip2_streams_match_bzip2() {
    let stream = |choice: &mut Choice, content: &[u8]| {
        let level = ::bzip2::Compression::new(1 + choice.below(9) as u32);
        let mut encoder = ::bzip2::write::BzEncoder::new(Vec::new(), level);
        encoder.write_all(content).expect("a Vec takes every write");
        encoder.finish().expect("a Vec takes every write")
    };
    let format = Format::unpadded("a.bz2", &stream);
    check_all(&format, &["bz2"], "import bz2\ndecompress = bz2.decompress");
}

#[cfg(feature = "xz")]
#[test]
fn xz_streams_and_padding_match_xz() {
    let check = |_: &mut Choice, content: &[u8]| {
        filtered("xz", &["-c", "-0"], content, "xz").unwrap_or_default()
    };
    let blocks = |choice: &mut Choice, content: &[u8]| match choice.below(2) {
        0 => check(choice, content),
        _ => filtered("xz", &["-c", "--block-size=100"], content, "xz").unwrap_or_default(),
    };
    let padding = |choice: &mut Choice, at: usize| {
        let mut padding = zeros(choice, at);
        padding.truncate(padding.len() / 4 * 4);
        vec![padding]
    };
    let format = Format {
        padding: &padding,
        zeros_unit: 4,
        ..Format::unpadded("a.xz", &blocks)
    };
    if filtered("xz", &["-c"], b"", "xz").is_some() {
        check_all(&format, &["subprocess"], &by_program("xz"));
    }
}

#[cfg(feature = "lz4")]
#[test]
fn lz4_frames_match_lz4() {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    let frame = |choice: &mut Choice, content: &[u8]| {
        let mode = [BlockMode::Independent, BlockMode::Linked][choice.below(2)];
        let info = FrameInfo::new()
            .block_size(BlockSize::Max64KB)
            .block_mode(mode)
            .content_checksum(true);
        let info = info.block_checksums(choice.below(2) == 0);
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(content).expect("a Vec takes every write");
        encoder.finish().expect("a Vec takes every write")
    };
    let padding = |choice: &mut Choice, _: usize| some(choice, skippable);
    let format = Format {
        padding: &padding,
        begins_with_padding: true,
        ..Format::unpadded("a.lz4", &frame)
    };
    if filtered("lz4", &["-c"], b"", "lz4").is_some() {
        check_all(&format, &["subprocess"], &by_program("lz4"));
    }
}

#[cfg(feature = "snappy")]
#[test]
fn snappy_padding_is_skipped_everywhere() {
    let frame = |_: &mut Choice, content: &[u8]| {
        // The encoder writes nothing for empty content.
        let mut encoder = snap::write::FrameEncoder::new(Vec::new());
        encoder.write_all(content).expect("a Vec takes every write");
        let frames = encoder.into_inner().expect("a Vec takes every write");
        if frames.is_empty() {
            b"\xff\x06\0\0sNaPpY".to_vec()
        } else {
            frames
        }
    };
    let padding = |choice: &mut Choice, _: usize| {
        some(choice, |choice| {
            let kind = [0xfe_u8, 0x80, 0xfd][choice.below(3)];
            // A chunk without data may be longer than one with data.
            let length = [choice.below(50), choice.below(200_000)][choice.below(2)];
            let [one, two, three, _] = (length as u32).to_le_bytes();
            [&[kind, one, two, three][..], &vec![7; length]].concat()
        })
    };
    // A file truncated at the end of a chunk cannot be detected.
    let format = Format {
        padding: &padding,
        ..Format::unpadded("a.snappy", &frame)
    };
    for seed in 1..=CASES {
        let mut layout = Layout::draw(&format, seed);
        layout.ends.extend(chunk_ends(&layout.bytes));
        check("a.snappy", seed, &layout);
    }
}

#[cfg(feature = "snappy")]
fn chunk_ends(frames: &[u8]) -> Vec<usize> {
    let mut ends = vec![0];
    while let Some([_, one, two, three]) = frames
        .get(ends[ends.len() - 1]..)
        .and_then(|rest| rest.first_chunk())
    {
        let length = u32::from_le_bytes([*one, *two, *three, 0]) as usize;
        ends.push(ends[ends.len() - 1] + 4 + length);
    }
    ends
}

/// A block of Hadoop's framing, in chunks of random sizes, some of them empty.
#[cfg(any(feature = "lz4", feature = "snappy"))]
fn hadoop_block(
    choice: &mut Choice,
    content: &[u8],
    compress: &dyn Fn(&[u8]) -> Vec<u8>,
) -> Vec<u8> {
    let length = |bytes: usize| u32::try_from(bytes).expect("a short one").to_be_bytes();
    let mut block = length(content.len()).to_vec();
    for chunk in content.chunks(1 + choice.below(500)) {
        let compressed = compress(chunk);
        block.extend([&length(compressed.len())[..], &compressed].concat());
    }
    block
}

/// The framing in Python, with Arrow's `codec` for the content of the chunks.
#[cfg(any(feature = "lz4", feature = "snappy"))]
fn hadoop_script(codec: &str) -> String {
    format!(
        r#"
import pyarrow, struct
codec = pyarrow.Codec("{codec}")
def content_bytes(chunk, left):
    if "{codec}" == "snappy":
        length = shift = 0
        for byte in chunk:
            length |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return length
    # Raw lz4 does not say; the chunks of a block are of one size, but for the last.
    at = size = 0
    while at < len(chunk):
        token = chunk[at]; at += 1
        literals = token >> 4
        while literals >= 15 and (token >> 4) == 15:
            literals += chunk[at]; at += 1
            if chunk[at - 1] < 255: break
        at += literals; size += literals
        if at >= len(chunk): break
        at += 2
        match = (token & 15) + 4
        while (token & 15) == 15:
            match += chunk[at]; at += 1
            if chunk[at - 1] < 255: break
        size += match
    return size
def decompress(data):
    at, out = 0, b""
    while at < len(data):
        left, = struct.unpack_from(">I", data, at); at += 4
        while left:
            length, = struct.unpack_from(">I", data, at); at += 4
            chunk = data[at:at + length]; at += length
            size = content_bytes(chunk, left)
            out += codec.decompress(chunk, size, asbytes=True)
            left -= size
    return out
"#
    )
}

#[cfg(feature = "snappy")]
#[test]
fn hadoop_snappy_blocks_after_empty_blocks_are_read() {
    let compress = |content: &[u8]| {
        snap::raw::Encoder::new()
            .compress_vec(content)
            .expect("it is short")
    };
    let block = |choice: &mut Choice, content: &[u8]| hadoop_block(choice, content, &compress);
    let empty = |choice: &mut Choice, _: usize| some(choice, |_| vec![0; 4]);
    let format = Format {
        padding: &empty,
        begins_with_padding: true,
        ..Format::unpadded("a.snappy", &block)
    };
    check_all(&format, &["pyarrow"], &hadoop_script("snappy"));
}

#[cfg(feature = "lz4")]
#[test]
fn hadoop_lz4_blocks_after_empty_blocks_are_read() {
    let block = |choice: &mut Choice, content: &[u8]| {
        hadoop_block(choice, content, &lz4_flex::block::compress)
    };
    let empty = |choice: &mut Choice, _: usize| some(choice, |_| vec![0; 4]);
    let format = Format {
        padding: &empty,
        begins_with_padding: true,
        ..Format::unpadded("a.lz4", &block)
    };
    check_all(&format, &["pyarrow"], &hadoop_script("lz4_raw"));
}
