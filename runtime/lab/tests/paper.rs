//! Figures of the papers: the registry against what was published, verdicts that can fail, reports that are
//! made again.
//!
//! Owns that a verdict follows from rows alone. Does not own the statistics by themselves
//! (`paper::inference`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use napreduce_core::PrimitiveChoice;
use napreduce_lab::paper::{
    Executor, Paper, PaperError, PaperReport, PaperSettings, Repetitions, Runs, Selection, SimulateError,
    Verdict, paper, paper_again, papers, plan, select, simulate,
};
use napreduce_lab::{Interrupt, Session, WorkSettings};
use napreduce_schedulers::SchedulerName;

/// Numbers of the papers, typed from them once more: paper, figure, and what stands there.
const PUBLISHED: &str = include_str!("published.txt");

fn quiet() -> Session {
    Session::new(Interrupt::never(), WorkSettings::default(), PathBuf::new(), |_| {})
}

fn registry() -> Vec<Paper> {
    papers().expect("a registry that can be read")
}

fn settings(folder: &Path, paper: &str, figures: &str, blocks: u32) -> PaperSettings {
    PaperSettings {
        figures: select(&registry(), paper, Some(figures)).expect("there are such figures"),
        blocks: Some(blocks),
        seed: 1,
        folder: folder.to_owned(),
        go_on: false,
        simulate: true,
        rehearse: false,
        live: false,
    }
}

/// The verdicts of some figures of a paper under a registry that was changed.
fn verdicts(paper: Paper, figures: &[&str], blocks: u32) -> BTreeMap<String, Verdict> {
    let mut runs = Runs::default();
    let planned =
        plan(&paper, figures, Executor::Simulated, Repetitions { blocks: Some(blocks), first: 0, seed: 1 });
    simulate(&planned, &Interrupt::never(), |run| -> Result<(), SimulateError> {
        runs.add(run);
        Ok(())
    })
    .expect("runs that end");
    let chosen = figures.iter().map(|id| (paper.name.clone(), (*id).to_owned())).collect();
    let report = PaperReport::new(
        vec![paper],
        Selection { figures: chosen, looks: 1, executors: vec![Executor::Simulated] },
        runs,
    )
    .expect("figures");
    report.judgements.into_iter().map(|judgement| (judgement.figure, judgement.verdict)).collect()
}

fn paper_of(name: &str) -> Paper {
    registry().into_iter().find(|paper| paper.name == name).expect("a paper")
}

#[test]
fn what_the_registry_calls_published_is_what_was_published() {
    let mut typed: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    for line in PUBLISHED.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let mut words = line.split_whitespace();
        let (paper, figure) = (words.next().expect("a paper"), words.next().expect("a figure"));
        let numbers = words.map(|word| word.parse::<f64>().expect("a number"));
        typed.entry((paper.to_owned(), figure.to_owned())).or_default().extend(numbers);
    }
    for paper in registry() {
        for (id, figure) in &paper.figures {
            let known = typed.remove(&(paper.name.clone(), id.clone())).unwrap_or_default();
            for number in figure.published() {
                assert!(
                    known.contains(&number),
                    "{} {id}: {number} is called published, and published.txt has {known:?}",
                    paper.name
                );
            }
        }
    }
    assert_eq!(typed, BTreeMap::new(), "typed, but no figure of the registry");
}

#[test]
fn every_figure_with_results_is_there() {
    let all: usize = registry().iter().map(|paper| paper.figures.len()).sum();
    // 41 figures and tables, three results in the text, and twelve questions of our own.
    assert_eq!(all, 44 + 12);
}

#[test]
fn a_policy_in_the_place_of_another_turns_verdicts_that_depend_on_it() {
    let right = verdicts(paper_of("natjam"), &["4", "5", "6", "10"], 30);
    assert!(right.values().all(|verdict| *verdict <= Verdict::DirectionHolds), "{right:?}");
    for (paper, from, figures) in [
        ("natjam", SchedulerName::Natjam, &["4", "5", "6"][..]),
        ("natjam", SchedulerName::NatjamDeadline, &["10"]),
        ("fcs", SchedulerName::Fcs, &["3"]),
        ("hfsp", SchedulerName::Hfsp, &["7"]),
        ("os", SchedulerName::Trigger, &["2a", "2b", "3a", "3b", "4"]),
        ("yarn", SchedulerName::Capacity, &["Y1", "Y2", "Y3", "pace"]),
    ] {
        let mut swapped = paper_of(paper);
        swapped.swap_policy(from, SchedulerName::Fifo);
        for (figure, verdict) in verdicts(swapped, figures, 30) {
            assert_eq!(verdict, Verdict::DoesNotHold, "{paper} {figure} with fifo in the place of {from}");
        }
    }
}

#[test]
fn a_choice_that_always_kills_is_not_taken_for_a_good_one() {
    let mut fixed = paper_of("auto");
    let campaigns = fixed.campaigns.values_mut();
    for variant in campaigns.filter_map(|campaign| campaign.variants.get_mut("auto")) {
        variant.primitive = Some(PrimitiveChoice::Kill);
    }
    for (figure, verdict) in verdicts(fixed, &["xl-s", "xl-l"], 30) {
        assert_eq!(verdict, Verdict::DoesNotHold, "auto {figure} with kill in the place of auto");
    }
}

#[test]
fn a_report_is_made_again_from_its_rows_to_the_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("report");
    let report = paper(&settings(&place, "natjam", "5-6,10", 6), &quiet(), |_, _| {}).expect("a report");
    assert_eq!(report.judgements.len(), 3);
    let files =
        ["verdicts.json", "report.txt", "report.html", "figures/natjam-5.svg", "figures/natjam-5.png"];
    let read = || files.map(|file| fs::read(place.join(file)).expect("a file of the report"));
    let before = read();
    for file in files {
        fs::remove_file(place.join(file)).expect("removed");
    }
    paper_again(&[&place]).expect("judged again");
    assert!(before == read(), "not the same bytes");
    let page = String::from_utf8(before[2].clone()).expect("text");
    assert!(
        page.contains("<svg") && page.contains("natjam 6") && !page.contains("src="),
        "it needs nothing else"
    );
    assert!(place.join("variants/natjam.xl-s.longest.configuration.toml").exists());
    let text = fs::read_to_string(place.join("environment.json")).expect("an environment");
    assert!(text.contains("\"cpus\"") && text.contains("\"command\""), "{text}");
}

#[test]
fn several_reports_are_told_as_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let places = ["first", "second", "third"].map(|name| folder.path().join(name));
    for (place, (name, figures)) in places.iter().zip([("natjam", "10"), ("yarn", "pace"), ("natjam", "6")]) {
        paper(&settings(place, name, figures, 6), &quiet(), |_, _| {}).expect("a report");
    }
    let all = paper_again(&places).expect("judged again");
    let told: Vec<_> = all.judgements.iter().map(|one| format!("{} {}", one.paper, one.figure)).collect();
    assert_eq!(told, ["natjam 10", "yarn pace", "natjam 6"]);
    assert_eq!(all.runs.iter().count(), 6 * (3 + 3 + 5));
    let page = all.markdown("this test");
    assert!(page.contains("(`yarn`)") && page.contains("3 figures"), "{page}");
    assert!(page.find("| 6: ").expect("natjam 6") < page.find("| 10: ").expect("natjam 10"), "{page}");
}

/// Reports that are kept in the repository, with their verdicts.
#[test]
fn kept_reports_of_live_runs_are_judged_as_they_were() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports");
    let reports = fs::read_dir(&kept).expect("the kept reports").map(|entry| entry.expect("an entry").path());
    let live: Vec<PathBuf> = reports.filter(|path| path.to_string_lossy().ends_with("-live")).collect();
    assert!(!live.is_empty());
    for report in live {
        let folder = tempfile::tempdir().expect("a folder");
        for file in ["report.json", "runs.jsonl.xz"] {
            fs::copy(report.join(file), folder.path().join(file)).expect("copied");
        }
        let page = paper_again(&[folder.path()]).expect("judged again").markdown("this test");
        assert!(page.contains("## Live over simulated") && page.contains("they agree"), "{page}");
        let read = |folder: &Path| fs::read_to_string(folder.join("verdicts.json")).expect("verdicts");
        assert!(
            read(&report) == read(folder.path()),
            "{report:?} is judged in another way now: nap lab paper --from it, and see what changed"
        );
    }
}

#[test]
fn a_report_is_added_to_and_knows_that_somebody_has_looked() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut settings = settings(folder.path(), "natjam", "10", 4);
    let report = paper(&settings, &quiet(), |_, _| {}).expect("a report");
    assert_eq!(report.count(Verdict::NotResolved), 1, "four blocks are too few");
    assert_eq!(report.judgements[0].because, None, "they do not say how many would settle it");
    let again = paper(&settings, &quiet(), |_, _| {});
    assert!(matches!(again, Err(PaperError::Exists(_))), "a report is not overwritten");
    settings.go_on = true;
    let report = paper(&settings, &quiet(), |_, _| {}).expect("more blocks");
    assert_eq!(report.count(Verdict::NotResolved), 0);
    assert_eq!(report.runs.iter().map(|run| run.run.seed).max(), Some(8), "other seeds");
    let page = fs::read_to_string(folder.path().join("report.html")).expect("a page");
    assert!(page.contains("97.5 %"), "{page}");
}

#[test]
fn what_was_cut_short_is_judged_by_what_is_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut settings = settings(folder.path(), "natjam", "10", 7);
    let report = paper(&settings, &quiet(), |_, _| {}).expect("a report");
    let raw = folder.path().join("raw.jsonl");
    assert!(!raw.exists(), "it is packed");
    fs::remove_file(folder.path().join("runs.jsonl.xz")).expect("removed");
    let mut text = Vec::new();
    report.runs.iter().for_each(|run| run.write(&mut text).expect("written"));
    let text = String::from_utf8(text).expect("text");
    fs::write(&raw, &text[..text.len() - 20]).expect("cut");
    let report = paper_again(&[folder.path()]).expect("judged");
    assert_eq!(report.runs.iter().count(), 7 * 3 - 1);
    (settings.go_on, settings.blocks) = (true, Some(1));
    paper(&settings, &quiet(), |_, _| {}).expect("one more block");
    let report = paper_again(&[folder.path()]).expect("judged");
    assert_eq!(report.runs.iter().count(), 8 * 3 - 1, "the row that was cut short is in nobody's way");
    assert!(!raw.exists(), "it is packed again");
    fs::write(&raw, format!("what\n{text}")).expect("spoilt");
    let error = paper_again(&[folder.path()]).expect_err("no rows").to_string();
    assert!(error.contains("raw.jsonl, line 1"), "{error}");
    let error = paper_again(&[folder.path().join("nowhere")]).expect_err("no report").to_string();
    assert!(error.contains("nowhere"), "{error}");
}

#[test]
fn figures_are_named_by_themselves_in_ranges_and_all() {
    let papers = registry();
    let ids = |paper: &str, figures: Option<&str>| -> Vec<String> {
        select(&papers, paper, figures).expect("figures").into_iter().map(|(_, id)| id).collect()
    };
    assert_eq!(ids("natjam", Some("10,4-6,5")), ["4", "5", "6", "10"]);
    assert_eq!(ids("natjam", None).len(), 14);
    assert_eq!(ids("all", None).len(), 56);
    for (paper, figures, said) in [
        ("hive", None, "there are os, natjam"),
        ("natjam", Some("99"), "it has 3, 4"),
        ("natjam", Some("6-4"), "no figure"),
    ] {
        let error = select(&papers, paper, figures).expect_err("there is none").to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn verdicts_and_errors_of_figures_have_statuses_of_their_own() {
    let run = |arguments: &[&str]| {
        let ended = Command::new(env!("CARGO_BIN_EXE_nap-lab")).args(arguments).output().expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (ended.status.code().expect("no signal"), text(ended.stdout), text(ended.stderr))
    };
    for (arguments, status, says) in [
        (&["paper", "natjam", "5", "--simulate"][..], 0, "natjam 5  HOLDS"),
        (&["paper", "natjam", "3", "--simulate"], 1, "natjam 3  DOES NOT HOLD"),
        (&["paper", "natjam", "5", "--rehearse"], 0, "natjam 5 rehearsed  HOLDS"),
        // Told at the paper's scale, and why it differs at its own.
        (&["paper", "natjam", "3", "--rehearse"], 1, "given Research-XL alone: 182.9"),
        (&["paper", "natjam", "3", "--rehearse"], 1, "some 10 s less"),
        (&["paper", "natjam", "5", "--simulate", "--repetitions", "2"], 3, "natjam 5  NOT RESOLVED"),
        (&["paper", "natjam", "5", "--simulate", "--quick"], 0, "nothing is judged by it"),
        (&["paper"], 0, "OS-Assisted Task Preemption"),
    ] {
        let (found, output, errors) = run(arguments);
        assert_eq!(found, status, "{arguments:?}: {output}{errors}");
        assert!(output.contains(says), "{arguments:?}: {output}");
    }
    for (arguments, says) in [
        (&["paper", "hive", "--simulate"][..], "there are os, natjam, fcs, hfsp, yarn, auto, and all"),
        (&["paper", "natjam", "99", "--simulate"], "natjam has no figure \"99\""),
        (&["paper", "natjam", "13"], "add --simulate"),
        (&["paper", "--from", "nowhere"], "nowhere"),
        (&["paper", "natjam", "5", "--rehearse", "--both"], "cannot be used with"),
        (&["paper", "natjam", "13", "--rehearse"], "add --simulate"),
    ] {
        let (found, _, errors) = run(arguments);
        assert_eq!(found, 2, "{arguments:?}: {errors}");
        assert!(errors.contains(says), "{arguments:?}: {errors}");
    }
}
