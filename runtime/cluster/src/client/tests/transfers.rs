//! Transfers of programs, side files and logs.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use napreduce_engine::{AttemptId, JobId, TaskId, TaskKind};
use napreduce_local::SideFileSource;
use napreduce_local::world::World;
use napreduce_local::world::disk::RealDisk;
use napreduce_protocol::{Blob, Digest, FromCoordinator, LogStream, Submission, ToCoordinator};

use super::scene::{Background, Coordinator, DEADLINE, Scene, plan};
use crate::blobs;
use crate::blobs::{BlobStore, FetchError};
use crate::client::LogRead;
use crate::coordinator::{LogHolder, LoopRequest};
use crate::shuffle::{DataServer, DataServerSettings, LogExtent, ServedFiles};
use crate::transport::Listener;

/// A coordinator that accepts every job.
fn accepting_coordinator(scene: &Scene) -> (Coordinator, Receiver<Box<Submission>>) {
    let (sender, received) = channel();
    let coordinator = scene.coordinator(move |request| {
        if let LoopRequest::Message(ToCoordinator::Submission(submission), reply) = request {
            let _ = sender.send(submission);
            reply.send(Ok(FromCoordinator::Submitted(JobId(1))));
        }
    });
    (coordinator, received)
}

fn only_blob(scene: &Scene) -> PathBuf {
    let blobs: Vec<PathBuf> = fs::read_dir(scene.blobs())
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    assert_eq!(blobs.len(), 1, "{blobs:?}");
    blobs[0].clone()
}

#[test]
fn program_of_several_jobs_is_sent_once() {
    let scene = Scene::new();
    let (_coordinator, _received) = accepting_coordinator(&scene);
    let mut client = scene.client();
    let options = scene.options();
    client.submit(plan(), &options).expect("it is taken");
    let sent = fs::metadata(only_blob(&scene)).expect("a blob");
    client.submit(plan(), &options).expect("it is taken");
    scene
        .client()
        .submit(plan(), &options)
        .expect("it is taken");
    let then = fs::metadata(only_blob(&scene)).expect("a blob");
    assert_eq!(
        (sent.ino(), sent.mtime_nsec()),
        (then.ino(), then.mtime_nsec())
    );
}

#[test]
fn concurrent_clients_of_one_program_all_submit() {
    let scene = Scene::new();
    let (_coordinator, received) = accepting_coordinator(&scene);
    // The store of 1 MiB has no room for a second copy, so only one client may send it.
    let program = scene.program(&vec![9; 600 << 10]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let options = crate::client::SubmitOptions {
                    program: Some(program.clone()),
                    ..Default::default()
                };
                scene
                    .client()
                    .submit(plan(), &options)
                    .expect("it is taken");
            });
        }
    });
    assert_eq!(received.iter().take(8).count(), 8);
    assert_eq!(
        fs::read(only_blob(&scene)).expect("a blob"),
        fs::read(&program).expect("a program")
    );
}

#[test]
fn side_files_keep_given_names() {
    let scene = Scene::new();
    let (_coordinator, received) = accepting_coordinator(&scene);
    let path = scene.folder.path().join("stopwords.txt");
    fs::write(&path, "and\nthe\n").expect("a written file");
    let mut options = scene.options();
    options.files = vec![SideFileSource {
        path: path.clone(),
        name: "words".to_owned(),
    }];
    scene
        .client()
        .submit(plan(), &options)
        .expect("it is taken");
    let submission = received.recv_timeout(DEADLINE).expect("it was submitted");
    let [file] = submission.files.as_slice() else {
        panic!("{:?}", submission.files)
    };
    assert_eq!(file.name, "words");
    assert_eq!(
        fs::read(scene.blobs().join(file.blob.digest.to_string())).expect("a blob"),
        b"and\nthe\n"
    );
}

#[test]
fn side_file_beyond_limit_is_refused() {
    let scene = Scene::new();
    let (_coordinator, _received) = accepting_coordinator(&scene);
    let path = scene.folder.path().join("large");
    fs::write(&path, [7; 11]).expect("a written file");
    let mut options = scene.options();
    options.files = vec![SideFileSource {
        path,
        name: "large".to_owned(),
    }];
    options.file_bytes_max = 10;
    let error = scene
        .client()
        .submit(plan(), &options)
        .expect_err("it is too large");
    let says = "large: it has more than 10 bytes; allow more with --conf side-file-max=SIZE";
    assert!(error.to_string().contains(says), "{error}");
    assert_eq!(error.exit_status(), 2);
    // A file in /proc reports no length.
    let without_length = PathBuf::from("/proc/version");
    options.files = vec![SideFileSource {
        path: without_length,
        name: "large".to_owned(),
    }];
    let error = scene
        .client()
        .submit(plan(), &options)
        .expect_err("it is too large");
    assert!(
        error.to_string().contains("it has more than 10 bytes"),
        "{error}"
    );
    options.file_bytes_max = 1 << 20;
    scene
        .client()
        .submit(plan(), &options)
        .expect("it is taken");
}

#[test]
fn unusable_side_files_are_named() {
    let scene = Scene::new();
    let (_coordinator, _received) = accepting_coordinator(&scene);
    let file = scene.folder.path().join("file");
    fs::write(&file, "x").expect("a written file");
    let source = |path: &PathBuf, name: &str| SideFileSource {
        path: path.clone(),
        name: name.to_owned(),
    };
    let folder = scene.folder.path().to_owned();
    for (files, says) in [
        (
            vec![source(&scene.folder.path().join("missing"), "a")],
            "missing: No such file",
        ),
        (vec![source(&folder, "a")], ": it is not a regular file"),
        (
            vec![source(&PathBuf::from("/dev/zero"), "a")],
            "cannot send /dev/zero: it is not a regular file",
        ),
        (
            vec![source(&file, "../a")],
            "invalid side file name \"../a\"; use PATH#NAME",
        ),
        (vec![source(&file, "..")], "invalid side file name \"..\""),
        (vec![source(&file, "")], "invalid side file name \"\""),
        (
            vec![source(&file, "a"), source(&file, "a")],
            "two side files have the name \"a\"; rename one",
        ),
    ] {
        let mut options = scene.options();
        options.files = files;
        let error = scene
            .client()
            .submit(plan(), &options)
            .expect_err("it is refused");
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(error.exit_status(), 2);
    }
    let mut options = scene.options();
    options.program = Some(file);
    let error = scene
        .client()
        .submit(plan(), &options)
        .expect_err("it is no program")
        .to_string();
    assert!(error.contains("file is not an ELF executable"), "{error}");
}

#[test]
fn too_large_program_is_refused_before_upload() {
    let mut scene = Scene::new();
    scene.limits.blob_bytes_max = 1000;
    let (_coordinator, _received) = accepting_coordinator(&scene);
    let mut options = scene.options();
    options.program = Some(scene.program(&[1; 2000]));
    let error = scene
        .client()
        .submit(plan(), &options)
        .expect_err("it is refused");
    assert!(
        error
            .to_string()
            .contains("of 2064 bytes is too large (limit 1000)"),
        "{error}"
    );
    scene.limits.blob_bytes_max = u64::MAX;
    let (_coordinator, _received) = accepting_coordinator(&scene);
    options.program = Some(scene.program(&vec![1; 2 << 20]));
    let error = scene
        .client()
        .submit(plan(), &options)
        .expect_err("it does not fit")
        .to_string();
    assert!(error.contains("of 1048576 bytes"), "{error}");
}

#[test]
fn fetched_blob_is_stored_on_worker() {
    let scene = Scene::new();
    let (coordinator, received) = accepting_coordinator(&scene);
    let mut options = scene.options();
    options.program = Some(scene.program(&vec![3; 700 << 10]));
    scene
        .client()
        .submit(plan(), &options)
        .expect("it is taken");
    let blob = received
        .recv_timeout(DEADLINE)
        .expect("it was submitted")
        .program;
    let store = BlobStore::open(
        Arc::new(RealDisk),
        scene.folder.path().join("worker"),
        1 << 20,
    )
    .expect("a store");
    let address = coordinator.address.to_string();
    let secret = scene.directory().secret().expect("a secret");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let pinned = runtime
        .block_on(blobs::fetch(
            &World::real(),
            &address,
            &secret,
            &store,
            blob,
        ))
        .expect("it is there");
    assert_eq!(
        fs::read(pinned.path()).expect("a blob"),
        fs::read(scene.folder.path().join("program")).expect("it")
    );
    let missing = Blob {
        digest: Digest([7; 32]),
        bytes: 3,
    };
    let error = runtime
        .block_on(blobs::fetch(
            &World::real(),
            &address,
            &secret,
            &store,
            missing,
        ))
        .expect_err("it is not there");
    assert!(
        error
            .to_string()
            .contains("is not stored; submit its job again"),
        "{error}"
    );
    assert!(!error.is_passing());
    drop(coordinator);
    runtime
        .block_on(blobs::fetch(
            &World::real(),
            &address,
            &secret,
            &store,
            blob,
        ))
        .expect("it was kept");
    let error = runtime
        .block_on(blobs::fetch(
            &World::real(),
            &address,
            &secret,
            &store,
            missing,
        ))
        .expect_err("no coordinator");
    assert!(
        matches!(error, FetchError::Transport { .. }) && error.is_passing(),
        "{error}"
    );
}

struct Logs(PathBuf);

impl ServedFiles for Logs {
    fn segment(&self, _: AttemptId) -> Option<PathBuf> {
        None
    }

    fn read_log(
        &self,
        attempt: AttemptId,
        stream: LogStream,
        offset: u64,
        most: u64,
    ) -> io::Result<(u64, Vec<u8>)> {
        if (attempt.number, stream) != (1, LogStream::Stderr) {
            return Err(io::Error::other(format!(
                "this worker has no log of {attempt}"
            )));
        }
        LogExtent {
            path: self.0.clone(),
            offset: 0,
            bytes: None,
        }
        .read(offset, most)
    }
}

#[test]
fn log_is_read_from_worker_or_coordinator() {
    let scene = Scene::new();
    let log = scene.folder.path().join("stderr");
    let text: Vec<u8> = (0..400_000_u32)
        .flat_map(|number| number.to_le_bytes())
        .collect();
    fs::write(&log, &text).expect("a written file");
    let secret = scene.directory().secret().expect("a secret");
    let files = Arc::new(Logs(log));
    let (_worker, holder) = Background::start(async move || {
        let listener = Listener::bind(&World::real(), "127.0.0.1:0", secret, |_| {})
            .await
            .expect("a port");
        let server = DataServer::start(
            World::real().tasks,
            listener,
            files,
            DataServerSettings::default(),
            |_| {},
        );
        let address = server.address().to_string();
        (server, address)
    });
    let _coordinator = scene.coordinator(move |request| {
        if let LoopRequest::LogHolder { attempt, reply } = request {
            let address = match attempt.number {
                3 | 4 => Err("its worker is lost".to_owned()),
                _ => Ok(holder.clone()),
            };
            let stderr = (attempt.number > 3).then(|| "it panicked".into());
            reply.send(Ok(LogHolder {
                address,
                stderr,
                has_ended: attempt.number == 1,
            }));
        }
    });
    let attempt = |number| AttemptId {
        task: TaskId {
            job: JobId(1),
            kind: TaskKind::Map,
            index: 0,
        },
        number,
    };
    let mut client = scene.client();
    let mut read = |number, offset| {
        let mut bytes = Vec::new();
        client
            .log(attempt(number), LogStream::Stderr, offset, &mut bytes)
            .map(|read| (read, bytes))
    };
    let of = |written| LogRead {
        written,
        length: 1_600_000,
        has_ended: true,
    };
    assert!(read(1, 0).expect("a log") == (of(1_600_000), text.clone()));
    assert!(read(1, 1_599_990).expect("a log") == (of(10), text[1_599_990..].to_vec()));
    assert!(read(1, 1_600_000).expect("a log") == (of(0), Vec::new()));
    assert!(read(1, u64::MAX).expect("a length") == (of(0), Vec::new()));
    let error = read(2, 0).expect_err("no log").to_string();
    assert!(
        error.starts_with("cannot read the logs of job_0001_m_0000.2 at 127.0.0.1:"),
        "{error}"
    );
    assert_eq!(
        read(3, 0).expect_err("no log").to_string(),
        "its worker is lost"
    );
    // The coordinator kept the end of the log: one worker is lost, the other has removed the log.
    let kept = LogRead {
        written: 8,
        length: 11,
        has_ended: true,
    };
    assert!(read(4, 3).expect("kept") == (kept, b"panicked".to_vec()));
    assert_eq!(read(5, 0).expect("kept").1, b"it panicked");
    assert_eq!(read(5, 99).expect("a length").1, b"");
}
