//! Formatting of litmus tests: aligns the columns of the thread table.
//!
//! Only white space changes, so that comments stay: the result has the same characters without white space, and
//! parses to the same test. Otherwise the text does not change.

/// Returns the text with aligned columns; `None` if it does not parse or is formatted already.
pub fn format(text: &str, name: &str) -> Option<String> {
    let test = litmus::parse(text, name).ok()?;
    if test.dialect != litmus::Dialect::Vulkan {
        return None;
    }
    let formatted = align_table(text);
    let without_white_space = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    let is_unchanged = without_white_space(text) == without_white_space(&formatted)
        && litmus::parse(&formatted, name).is_ok_and(|new| new == test);
    (is_unchanged && formatted != text).then_some(formatted)
}

/// Aligns the rows of the table and removes white space at the ends of lines.
fn align_table(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let start = lines.iter().position(|line| is_thread_row(line));
    // A row over several lines ends the table for us.
    let rows: Vec<(usize, Vec<&str>)> = lines
        .iter()
        .enumerate()
        .skip(start.unwrap_or(lines.len()))
        .take_while(|(_, line)| line.is_empty() || has_comment(line) || row_cells(line).is_some())
        .filter(|(_, line)| !has_comment(line))
        .filter_map(|(number, line)| Some((number, row_cells(line)?)))
        .collect();
    let columns = rows.iter().map(|(_, cells)| cells.len()).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|(_, cells)| cells.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut lines: Vec<String> = lines.into_iter().map(str::to_owned).collect();
    for (number, cells) in &rows {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        lines[*number] = format!("{} ;", cells.collect::<Vec<_>>().join(" | "));
    }
    let mut out = lines.join("\n");
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// Returns true for the row that places the threads.
fn is_thread_row(line: &str) -> bool {
    let rest = line.trim_start().strip_prefix('P');
    rest.is_some_and(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('@'))
}

fn has_comment(line: &str) -> bool {
    ["(*", "*)", "<<", ">>"].iter().any(|mark| line.contains(mark))
}

/// Returns the trimmed cells of a row; `None` for a line that is not a complete row.
fn row_cells(line: &str) -> Option<Vec<&str>> {
    let row = line.trim().strip_suffix(';')?;
    // Statements after the table, such as `locations [x;]`, have other characters.
    if row.contains([';', '(', '[']) || row.trim_start().starts_with("locations") {
        return None;
    }
    Some(row.split('|').map(str::trim).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAGGED: &str = r"VULKAN MP
(* a comment; with | signs *)
{ x = 0; y = 0; }
  P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0;
 st.av.dv.sc0 x, 1 |ld.atom.acq.dv.sc0.semsc0 r0, y ;
(* between | rows ; *)
st.atom.rel.dv.sc0.semsc0 y, 1|    ;   
exists (P1:r0 == 1)


";

    #[test]
    fn columns_are_aligned_and_comments_stay() {
        let expected = r"VULKAN MP
(* a comment; with | signs *)
{ x = 0; y = 0; }
P0@sg 0, wg 0, qf 0            | P1@sg 0, wg 1, qf 0             ;
st.av.dv.sc0 x, 1              | ld.atom.acq.dv.sc0.semsc0 r0, y ;
(* between | rows ; *)
st.atom.rel.dv.sc0.semsc0 y, 1 |                                 ;
exists (P1:r0 == 1)
";
        assert_eq!(format(RAGGED, "MP.litmus").as_deref(), Some(expected));
        assert_eq!(format(expected, "MP.litmus"), None);
    }

    #[test]
    fn invalid_texts_are_not_formatted() {
        assert_eq!(format(&RAGGED.replace("sc0", "sc7"), "MP.litmus"), None);
    }

    #[test]
    fn formatting_is_idempotent() {
        let mut formatted = 0;
        for test in litmus::corpus::tests() {
            let Some(once) = format(test.text, &test.path) else { continue };
            formatted += 1;
            assert_eq!(format(&once, &test.path), None, "{}", test.path);
        }
        assert!(formatted > 0, "no embedded test has a ragged table");
    }
}
