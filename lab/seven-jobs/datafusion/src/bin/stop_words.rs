use std::env;

use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::error::Result;
use datafusion::prelude::*;

/// Counts words that are not in a list: `stop_words INPUT STOP OUTPUT`.
#[tokio::main]
async fn main() -> Result<()> {
    let paths: Vec<String> = env::args().collect();
    let ctx = SessionContext::new();
    let lines = CsvReadOptions::new().has_header(false).delimiter(0).file_extension(".txt");
    ctx.register_csv("text", &paths[1], lines.clone()).await?;
    ctx.register_csv("stop", &paths[2], lines).await?;
    let counts = ctx.sql(
        "SELECT word, count(*) FROM (SELECT unnest(string_to_array(column_1, ' ')) AS word FROM text)
         WHERE word NOT IN (SELECT column_1 FROM stop) GROUP BY word",
    );
    counts.await?.write_csv(&paths[3], DataFrameWriteOptions::new(), None).await?;
    Ok(())
}
