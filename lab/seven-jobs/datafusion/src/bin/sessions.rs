use std::env;

use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::error::Result;
use datafusion::prelude::*;

/// Sessions from lines VISITOR SECONDS PAGE: visitor, start, length and pages.
#[tokio::main]
async fn main() -> Result<()> {
    let paths: Vec<String> = env::args().collect();
    let ctx = SessionContext::new();
    let fields = CsvReadOptions::new().has_header(false).delimiter(b' ').file_extension(".txt");
    ctx.register_csv("visits", &paths[1], fields).await?;
    let sessions = ctx.sql(
        "WITH visits AS (SELECT column_1 AS visitor, column_2 AS at FROM visits),
         pauses AS (
             SELECT *, at - lag(at) OVER (PARTITION BY visitor ORDER BY at) > 30 * 60 AS is_new FROM visits
         ),
         numbered AS (
             SELECT *, sum(CASE WHEN is_new THEN 1 ELSE 0 END) OVER (PARTITION BY visitor ORDER BY at) AS session
             FROM pauses
         )
         SELECT visitor, min(at), max(at) - min(at), count(*) FROM numbered GROUP BY visitor, session",
    );
    sessions.await?.write_csv(&paths[2], DataFrameWriteOptions::new(), None).await?;
    Ok(())
}
