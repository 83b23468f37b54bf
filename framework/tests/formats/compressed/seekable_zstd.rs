//! Zstd with a seek table: splits between frames, and invalid tables.

use super::*;

/// Frames of this many bytes of content, and the table of zstd's `contrib/seekable_format`.
fn seekable(content: &[u8], frame: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut entries = Vec::new();
    for part in content.chunks(frame) {
        let compressed =
            ruzstd::encoding::compress_to_vec(part, ruzstd::encoding::CompressionLevel::Fastest);
        entries.push((compressed.len() as u32, part.len() as u32));
        out.extend_from_slice(&compressed);
    }
    out.extend_from_slice(&0x184D_2A5E_u32.to_le_bytes());
    out.extend_from_slice(&(entries.len() as u32 * 8 + 9).to_le_bytes());
    for (compressed, decompressed) in &entries {
        out.extend_from_slice(&compressed.to_le_bytes());
        out.extend_from_slice(&decompressed.to_le_bytes());
    }
    out.extend_from_slice(&(entries.len() as u32).to_le_bytes());
    out.push(0);
    out.extend_from_slice(&0x8F92_EAB1_u32.to_le_bytes());
    out
}

#[test]
fn seekable_zstd_is_split_between_frames() {
    let content = content(600);
    let compressed = seekable(&content, 1500);
    let file = TestFile::new("a.zst", &compressed);
    let sizes = (1..60).step_by(6).chain([333, 1000, 5003, file.size - 1]);
    assert!(same_at_every_cut(&ByteLines, &file, sizes, show) == lines_of(&content));
    is_preemption_safe("zst", &compressed, 3000);

    let plain = TestFile::new("a.zst", &compressed[..compressed.len() - 9]);
    assert!(matches!(
        ByteLines.splitting(&plain.path),
        Splitting::Compressed(_)
    ));
}

#[test]
fn false_seek_table_is_ignored_or_rejected() {
    let content = content(60);
    let compressed = seekable(&content, 500);
    let table = compressed.len() - content.len().div_ceil(500) * 8 - 17;
    for at in table..compressed.len() {
        let mut lying = compressed.clone();
        lying[at] ^= 4;
        let file = TestFile::new("a.zst", lying);
        if ByteLines.splittable(&file.path) {
            let lines: Result<Vec<_>, InputError> = file
                .pieces(100)
                .iter()
                .map(|piece| read(&ByteLines, piece, false, show))
                .collect();
            if let Ok(lines) = lines {
                assert!(
                    lines.concat() == lines_of(&content),
                    "byte {at} of the file"
                );
            }
        }
    }
}

#[test]
fn progress_counts_compressed_bytes() {
    let compressed = seekable(&content(600), 1500);
    let file = TestFile::new("a.zst", &compressed);
    let consumed = file.pieces(1000).into_iter().map(|piece| {
        let mut reader = ByteLines.open(&piece, 1 << 20).expect("it opens");
        while reader
            .read_batch(&mut |_: &[u8]| Ok::<(), InputError>(()))
            .expect("it is intact")
        {}
        assert_eq!(reader.consumed(), piece.length);
        piece.length
    });
    assert_eq!(consumed.sum::<u64>(), file.size);
}
