//! Tabs that a link opens get the token of the tab that has it, and lose it when the browser signs out.

use napreduce_tests::{Folder, GatedJob, OwnCluster};

use super::driver::Browser;
use super::{ANYWHERE, link, origin};

const TOKEN: &str = "return sessionStorage.getItem('nap-token') !== null";

#[test]
fn new_tab_of_operator_offers_orders() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 1, "fifo", ANYWHERE);
    let job = GatedJob::submit(&folder, &cluster, "gated", "napping", 1, 1);
    job.until("m_0000.1", "running");
    let link = link(&cluster, &[]);
    browser.open(&link);
    let first = browser.this_tab();
    // A tab without an opener, as a middle click makes it: it has the cookie, but no copy of the storage.
    browser.tab(&format!("{}/jobs/job_0001", origin(&link)));
    browser.until(
        "orders",
        "return [...document.querySelectorAll('button')].some((one) => one.textContent === 'Kill')",
    );
    browser.until(
        "links can be shared",
        "return document.getElementById('share')?.hidden === false",
    );
    browser.has_no_complaints();
    // The token outlives the tab that signed in.
    let second = browser.this_tab();
    browser.turn_to(&first);
    browser.close_tab();
    browser.turn_to(&second);
    browser.tab(&format!("{}/about", origin(&link)));
    browser.until("a token", TOKEN);
    browser.click("Sign out");
    browser.until_says("Sign in by a link");
    browser.turn_to(&second);
    browser.until("its token is gone", &format!("{TOKEN} === false"));
    browser.until_says("Sign in by a link");
    browser.has_no_complaints_but(&["401"]);
    job.open("m_0000");
    job.open("r_0000");
    cluster.wait(&[job.id()]).succeeded();
}

#[test]
fn tab_signed_in_to_view_asks_for_no_token() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 1, "fifo", ANYWHERE);
    let job = GatedJob::submit(&folder, &cluster, "gated", "napping", 1, 1);
    job.until("m_0000.1", "running");
    browser.open(&link(&cluster, &[]));
    assert_eq!(browser.run(TOKEN), true);
    let view = link(&cluster, &["--view"]);
    browser.tab(&view);
    browser.open(&format!("{}/jobs/job_0001", origin(&view)));
    browser.until_says("This tab can only view.");
    // A message through the channel would have arrived before the answer to this one.
    browser.run(
        "return new Promise((done) => { const channel = new BroadcastChannel('nap-token'); \
         channel.onmessage = () => done(true); channel.postMessage({ kind: 'ask', from: 'test' }); })",
    );
    assert_eq!(browser.run(TOKEN), false);
    browser.has_no_complaints();
    job.open("m_0000");
    job.open("r_0000");
    cluster.wait(&[job.id()]).succeeded();
}
