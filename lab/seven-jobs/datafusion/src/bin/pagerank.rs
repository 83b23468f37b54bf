use std::env;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Float64Type;
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::error::Result;
use datafusion::prelude::*;

#[tokio::main]
async fn main() -> Result<()> {
    let paths: Vec<String> = env::args().collect();
    let ctx = SessionContext::new();
    let lines = CsvReadOptions::new().has_header(false).delimiter(0).file_extension(".txt");
    ctx.register_csv("text", &paths[1], lines).await?;
    let links = ctx.sql(
        "SELECT words[1] AS page, unnest(array_pop_front(words)) AS link, array_length(words) - 1 AS links
         FROM (SELECT string_to_array(column_1, ' ') AS words FROM text)",
    );
    ctx.register_table("links", links.await?.cache().await?.into_view())?;
    let ranks = ctx.sql("SELECT DISTINCT page, 1.0 AS rank FROM links").await?;
    ctx.register_table("ranks", ranks.into_view())?;
    loop {
        let next = ctx.sql(
            "SELECT page, sum(share) AS rank FROM (
                 SELECT page, 0.15 AS share FROM ranks
                 UNION ALL SELECT link, 0.85 * rank / links FROM links JOIN ranks USING (page)
             ) GROUP BY page",
        );
        let next = next.await?.cache().await?;
        ctx.register_table("next", next.clone().into_view())?;
        let moved = ctx.sql("SELECT sum(abs(next.rank - ranks.rank)) FROM next JOIN ranks USING (page)");
        let moved = moved.await?.collect().await?[0].column(0).as_primitive::<Float64Type>().value(0);
        ctx.deregister_table("next")?;
        ctx.deregister_table("ranks")?;
        if moved < 1e-6 {
            next.write_csv(&paths[2], DataFrameWriteOptions::new(), None).await?;
            return Ok(());
        }
        ctx.register_table("ranks", next.into_view())?;
    }
}
