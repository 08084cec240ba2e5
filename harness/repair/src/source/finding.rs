//! The finding to fix, as positions and names of the source.

use results::wire::FindingRecord;

use super::text::identifiers;

/// A finding in the file to edit.
#[derive(Clone, Debug)]
pub(super) struct RepairTarget {
    /// The kind, as published.
    pub kind: String,
    /// The lines of the accesses, from 1.
    pub lines: Vec<u32>,
    /// The names of the variable or block and of its members.
    pub names: Vec<String>,
    /// True if all invocations are in one workgroup.
    pub is_one_workgroup: bool,
    /// True if every access is a write.
    pub is_write_only: bool,
}

impl RepairTarget {
    /// Returns the target of a finding; `None` if an access is in another file or has no line.
    pub fn from_finding(file: &str, finding: &FindingRecord) -> Option<RepairTarget> {
        let is_in_file = |named: &Option<String>| named.as_deref().is_none_or(|named| named == file);
        let lines: Option<Vec<u32>> =
            finding.at.iter().map(|place| place.line.filter(|_| is_in_file(&place.file))).collect();
        let element = finding.element.as_deref().unwrap_or_default();
        let groups: Vec<Option<[u32; 3]>> = finding.at.iter().map(|place| place.workgroup).collect();
        Some(RepairTarget {
            kind: finding.kind.clone(),
            lines: lines?,
            names: identifiers(&strip_indices(element)).map(str::to_owned).collect(),
            is_one_workgroup: groups.iter().all(|group| group.is_some() && *group == groups[0]),
            is_write_only: finding.at.iter().all(|place| place.access.as_deref() == Some("write")),
        })
    }

    /// Returns true for races and reads of unpublished writes.
    pub fn is_race(&self) -> bool {
        ["race", "lockstep", "unpublished-read"].contains(&self.kind.as_str())
    }

    /// Returns true if an element of the source may be the variable of the finding.
    pub fn may_be_element(&self, element: &str) -> bool {
        let element = strip_indices(element);
        let mut words = identifiers(&element);
        words.any(|word| self.names.iter().any(|name| name == word))
    }
}

/// Returns an element without the text between brackets.
fn strip_indices(element: &str) -> String {
    let mut depth = 0_usize;
    let outside = element.chars().filter(|c| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => return depth == 0,
        }
        false
    });
    outside.collect()
}

/// Returns the key of a finding in a changed text: its kind and variable.
pub(super) fn finding_key(finding: &FindingRecord) -> (String, String) {
    variable_key(&finding.kind, finding.element.as_deref().unwrap_or_default())
}

/// The kind and variable of a finding, and the text of its lines.
pub(super) type LineKey = (String, String, Vec<String>);

/// Returns keys of findings with the text of their lines, which an edit elsewhere does not change.
pub(super) fn line_keys(text: &str, findings: &[FindingRecord]) -> Vec<LineKey> {
    let lines: Vec<&str> = text.lines().collect();
    let text = |line: Option<u32>| {
        let index = (line.unwrap_or(0) as usize).wrapping_sub(1);
        lines.get(index).map_or(String::new(), |text| text.trim().to_owned())
    };
    let key = |finding: &FindingRecord| {
        let (kind, variable) = finding_key(finding);
        (kind, variable, finding.at.iter().map(|place| text(place.line)).collect())
    };
    findings.iter().map(key).collect()
}

/// Returns true if one of the findings of a changed text may be the one to remove.
///
/// It has the same kind and variable, and the same lines in this or the opposite order. A line that the text did not have before
/// may be a changed form of any line.
pub(super) fn is_among(removed: &LineKey, findings: &[LineKey], before: &str) -> bool {
    let is_new = |line: &String| !before.lines().any(|known| known.trim() == line);
    let is_same = |key: &&LineKey| {
        let are_equal = |(own, old): (&String, &String)| own == old || is_new(own);
        let (own, old) = (&key.2, &removed.2);
        own.len() == old.len()
            && (own.iter().zip(old).all(are_equal) || own.iter().zip(old.iter().rev()).all(are_equal))
    };
    findings.iter().filter(|key| (&key.0, &key.1) == (&removed.0, &removed.1)).any(|key| is_same(&key))
}

/// Returns the key of findings of a kind about an element.
pub(super) fn variable_key(kind: &str, element: &str) -> (String, String) {
    let kind_group = match kind {
        "lockstep" | "unpublished-read" => "race",
        other => other,
    };
    (kind_group.to_owned(), strip_indices(element))
}
