use std::env;

use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::error::Result;
use datafusion::prelude::*;

/// The name of the user of each order, and its amount: `join USERS ORDERS OUTPUT`.
#[tokio::main]
async fn main() -> Result<()> {
    let paths: Vec<String> = env::args().collect();
    let ctx = SessionContext::new();
    ctx.register_csv("users", &paths[1], CsvReadOptions::new()).await?;
    ctx.register_csv("orders", &paths[2], CsvReadOptions::new()).await?;
    let joined = ctx.sql("SELECT name, amount FROM users JOIN orders ON users.id = orders.user").await?;
    joined.write_csv(&paths[3], DataFrameWriteOptions::new(), None).await?;
    Ok(())
}
