//! Random workload files: a small cluster, overheads, and jobs of several sizes, queues and deadlines.

use super::draw::Draw;

/// The queues of jobs and policies.
pub(super) const QUEUES: [&str; 3] = ["production", "research", "default"];

/// Returns a workload file.
pub(super) fn file(draw: &mut Draw) -> String {
    let machines = draw.number(1, 5);
    let maps = draw.number(1, 3);
    let reduces = draw.number(1, 2);
    let cluster = format!("machines = {machines}, map-slots = {maps}, reduce-slots = {reduces}");
    on_cluster(&cluster, draw)
}

/// Returns a workload file with containers.
pub(super) fn file_in_containers(draw: &mut Draw) -> String {
    let machines = draw.number(1, 5);
    let containers = draw.number(2, 5);
    let most = draw.number(1, 6);
    let most = if draw.chance(50) {
        format!(", masters-max = {most}")
    } else {
        String::new()
    };
    on_cluster(
        &format!("machines = {machines}, containers = {containers}{most}"),
        draw,
    )
}

fn on_cluster(cluster: &str, draw: &mut Draw) -> String {
    let mut text = format!("cluster = {{ {cluster} }}\n\n{}", overheads(draw));
    for number in 0..draw.number(2, 10) {
        text += &job(number, draw);
    }
    text
}

fn overheads(draw: &mut Draw) -> String {
    if draw.chance(40) {
        return "[overheads]\n".to_owned();
    }
    let mut text = "[overheads]\n".to_owned();
    text += &draw.perhaps("heartbeat", "\"1s\"");
    text += &draw.perhaps("out-of-band", true);
    text += &draw.perhaps("order-latency", "\"30ms\"");
    text += &draw.perhaps("launch", "\"700ms\"");
    for (what, fixed) in [
        ("suspend", 200),
        ("resume", 400),
        ("checkpoint-write", 1300),
        ("checkpoint-read", 500),
    ] {
        text += &draw.perhaps(what, format!("{{ fixed = \"{fixed}ms\" }}"));
    }
    text += &draw.perhaps("restore-elsewhere", "\"1s\"");
    text += &draw.perhaps("checkpoint-loss", "\"1s\"");
    text += &draw.perhaps("kill", "\"250ms\"");
    text
}

fn job(number: u32, draw: &mut Draw) -> String {
    let submit = draw.of(&[0, 0, 1, 3, 10, 30, 60]);
    let mut text =
        format!("\n[[job]]\nname = \"job{number}\"\nsubmit = \"{submit}s\"\nattempts-max = 100\n");
    text += &draw.word("queue", &QUEUES);
    text += &draw.word("user", &["ada", "bob"]);
    let priority = draw.of(&[-1, 0, 1]);
    text += &draw.perhaps("priority", priority);
    let deadline = draw.number(5, 200);
    text += &draw.perhaps("deadline", format!("\"{deadline}s\""));
    let slowstart = draw.of(&["0", "0.05", "0.5", "1"]);
    text += &draw.perhaps("slowstart", slowstart);
    let count = if draw.chance(30) {
        draw.number(10, 40)
    } else {
        draw.number(1, 6)
    };
    let seconds = seconds(draw);
    let output = draw.of(&[0, 1_000, 1_000_000]);
    text +=
        &format!("maps = {{ count = {count}, seconds = {seconds}, output-bytes = {output} }}\n");
    if draw.chance(60) {
        let count = draw.number(1, 8);
        let shuffle = draw.number(0, 5);
        let seconds = self::seconds(draw);
        text += &format!(
            "reduces = {{ count = {count}, shuffle-seconds = {shuffle}, seconds = {seconds} }}\n"
        );
    }
    text
}

fn seconds(draw: &mut Draw) -> &'static str {
    draw.of(&[
        "0.1",
        "1",
        "5",
        "20",
        "60",
        "{ uniform = [0, 12] }",
        "{ exponential = 8 }",
    ])
}
