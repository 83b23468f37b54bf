use napreduce::Job;
use napreduce::rows::CsvRows;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct User {
    id: u64,
    name: String,
}

#[derive(Serialize, Deserialize)]
struct Order {
    user: u64,
    amount: u64,
}

/// `join users=users.csv orders=orders.csv --output DIR`
fn join() -> Job<(String, u64)> {
    Job::join("users", CsvRows::<User>::default(), |user: User| (user.id, user))
        .with("orders", CsvRows::<Order>::default(), |order: Order| (order.user, order))
        .inner(|_, user, order, out| out.emit(&user.name, order.amount))
}

fn main() -> std::process::ExitCode {
    napreduce::main(join)
}
