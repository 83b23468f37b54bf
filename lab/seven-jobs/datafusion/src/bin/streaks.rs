use std::env;

use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::error::Result;
use datafusion::prelude::*;

/// The longest run of consecutive days of each user, from lines USER DAY.
#[tokio::main]
async fn main() -> Result<()> {
    let paths: Vec<String> = env::args().collect();
    let ctx = SessionContext::new();
    let fields = CsvReadOptions::new().has_header(false).delimiter(b' ').file_extension(".txt");
    ctx.register_csv("days", &paths[1], fields).await?;
    let streaks = ctx.sql(
        "WITH days AS (SELECT DISTINCT column_1 AS user, column_2 AS day FROM days),
         runs AS (SELECT *, day - row_number() OVER (PARTITION BY user ORDER BY day) AS run FROM days),
         lengths AS (SELECT user, run, count(*) AS length FROM runs GROUP BY user, run)
         SELECT user, max(length) FROM lengths GROUP BY user",
    );
    streaks.await?.write_csv(&paths[2], DataFrameWriteOptions::new(), None).await?;
    Ok(())
}
