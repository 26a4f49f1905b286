//! Files of `NAME=value` lines, as editors read them through `envFile`.

/// Reads the pairs in order. The error is the number of the first line that is none.
pub(crate) fn read(text: &str) -> Result<Vec<(String, String)>, usize> {
    let mut pairs = Vec::new();
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line.split_once('=').ok_or(index + 1)?;
        let name = name.trim_end();
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(index + 1);
        }
        pairs.push((name.to_owned(), unquote(value.trim_start())));
    }
    Ok(pairs)
}

/// Quoted values lose their quotes; unquoted ones a comment after a space.
fn unquote(value: &str) -> String {
    if let Some(rest) = value.strip_prefix('\'')
        && let Some(end) = rest.find('\'')
    {
        return rest[..end].to_owned();
    }
    if let Some(rest) = value.strip_prefix('"')
        && let Some(end) = rest.rfind('"')
    {
        return rest[..end].replace("\\n", "\n").replace("\\\"", "\"");
    }
    value.split(" #").next().unwrap_or_default().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn pairs_are_read_as_editors_do() {
        let text = "# note\n\nA=1\nexport B = two words # note\nC='# kept'\nD=\"x\\ny\"\nE=\nF=a#b=c\n";
        let pairs = read(text).unwrap();
        let shown: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let expected = [("A", "1"), ("B", "two words"), ("C", "# kept"), ("D", "x\ny"), ("E", ""), ("F", "a#b=c")];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_line_without_a_pair_is_named() {
        assert_eq!(read("A=1\nnonsense\n"), Err(2));
        assert_eq!(read("two words=1\n"), Err(1));
    }
}
