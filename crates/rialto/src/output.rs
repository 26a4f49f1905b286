//! Data on stdout. A reader that goes away (`rialto … | head`) is no error.

use std::io::{ErrorKind, IsTerminal, Write};

use serde::Serialize;

use crate::failure::{Failure, Outcome};

/// Writes bytes as they are.
pub(crate) fn bytes(data: &[u8]) -> Outcome {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(data).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::unexpected("cannot write to standard output").because(&error))
        }
        _ => Ok(()),
    }
}

/// Writes text as it is.
pub(crate) fn text(data: &str) -> Outcome {
    bytes(data.as_bytes())
}

/// Writes one JSON value on one line.
pub(crate) fn json(value: &impl Serialize) -> Outcome {
    let line = serde_json::to_string(value)
        .map_err(|error| Failure::unexpected("cannot write the result as JSON").because(&error))?;
    json_text(&line)
}

/// Writes JSON that is text already. A terminal must not be steered by what a stranger wrote in it; a file or pipe gets it as it is.
pub(crate) fn json_text(json: &str) -> Outcome {
    let is_terminal = std::io::stdout().is_terminal();
    let shown = if is_terminal { rialto_consumer::text::escaped(json) } else { json.to_owned() };
    text(&format!("{shown}\n"))
}

/// Lines up the cells of each row under each other, two spaces apart; the last cell is not padded.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width + 2 - cell.chars().count()));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn columns_line_up_by_characters_not_bytes() {
        let rows = vec![vec!["•••".to_owned(), "a".to_owned()], vec!["x".to_owned(), "b".to_owned()]];
        assert_eq!(super::table(&rows), "•••  a\nx    b\n");
    }
}
