//! Definitions and include folders from files: lists of definitions, and `compile_commands.json`.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

/// Parses a file of definitions: a line `NAME`, `NAME VALUE`, `NAME=VALUE` or `#define NAME VALUE` each.
/// Blank lines and lines that start with `//` are skipped.
///
/// # Errors
/// The number and the text of a line without a name.
pub fn parse_definitions(text: &str) -> Result<Vec<String>, (usize, String)> {
    let mut found = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if line.is_empty() || line.starts_with("//") {
            continue;
        }
        let definition = match line.strip_prefix('#') {
            Some(rest) => rest.trim_start().strip_prefix("define").map(str::trim_start),
            None => Some(line),
        };
        let is_named = |stated: &&str| stated.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let definition = definition.filter(is_named).ok_or_else(|| (number, line.to_owned()))?;
        // The parameters of a macro belong to its name.
        let macro_end = definition.find(')').filter(|end| {
            definition[..*end].find('(').is_some_and(|open| !definition[..open].contains([' ', '\t', '=']))
        });
        let from = macro_end.unwrap_or(0);
        let end = definition[from..].find([' ', '\t', '=']).map(|end| from + end);
        found.push(match end {
            Some(end) => {
                let value = definition[end..].trim_start();
                format!("{}={}", &definition[..end], value.strip_prefix('=').unwrap_or(value).trim())
            }
            None => definition.to_owned(),
        });
    }
    Ok(found)
}

/// The flags of a source in a compilation database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandFlags {
    pub defines: Vec<String>,
    pub includes: Vec<PathBuf>,
    pub entry: Option<String>,
}

/// A compilation database: the flags of each source by its path.
#[derive(Clone, Debug, Default)]
pub struct CompileCommands(BTreeMap<PathBuf, CommandFlags>);

/// An entry of `compile_commands.json`.
#[derive(Deserialize)]
struct CompileCommand {
    directory: PathBuf,
    file: PathBuf,
    command: Option<String>,
    arguments: Option<Vec<String>>,
}

impl CompileCommands {
    /// Parses a database in the format of `compile_commands.json`. Flags other than definitions, include
    /// folders and entry points are ignored. Relative folders are relative to `base`.
    ///
    /// # Errors
    /// If the text is not such a database.
    pub fn parse(text: &str, base: &Path) -> Result<CompileCommands, String> {
        let base = std::path::absolute(base).map_err(|error| error.to_string())?;
        let entries: Vec<CompileCommand> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut all = BTreeMap::new();
        for entry in entries {
            let words = entry.arguments.or_else(|| entry.command.as_deref().map(split_words));
            let directory = base.join(&entry.directory);
            let flags = parse_flags(&words.unwrap_or_default(), &directory);
            // The first command of a file counts, as in clangd.
            all.entry(normalize_path(&directory.join(&entry.file))).or_insert(flags);
        }
        Ok(CompileCommands(all))
    }

    pub fn flags_of(&self, file: &Path) -> Option<&CommandFlags> {
        let absolute = std::path::absolute(file).ok()?;
        self.0.get(&normalize_path(&absolute)).or_else(|| self.0.get(&absolute.canonicalize().ok()?))
    }
}

/// Returns a path without `.` and `..`.
fn normalize_path(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(normalized.pop()),
            part => normalized.push(part),
        }
    }
    normalized
}

fn parse_flags(words: &[String], directory: &Path) -> CommandFlags {
    let mut flags = CommandFlags::default();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let prefixed = ["-D", "-I"].into_iter().find_map(|flag| Some((flag, word.strip_prefix(flag)?)));
        if let Some((flag, value)) = prefixed {
            // `-D` alone means HLSL to glslang; a definition never starts with a dash.
            let mut next = || words.next_if(|next| !next.starts_with('-')).cloned();
            let value = if value.is_empty() { next() } else { Some(value.to_owned()) };
            match value {
                Some(value) if flag == "-D" => flags.defines.push(value),
                Some(value) => flags.includes.push(normalize_path(&directory.join(value))),
                None => {}
            }
        } else if let Some(entry) = word.strip_prefix("-fentry-point=") {
            flags.entry = Some(entry.to_owned());
        } else if ["-e", "-E", "-entry", "--entry-point"].contains(&word.as_str()) {
            flags.entry = words.next().cloned();
        }
    }
    flags
}

/// Splits a command line into words, as a shell does without expansions.
fn split_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut rest = line.chars();
    while let Some(next) = rest.next() {
        match (quote, next) {
            (Some(open), next) if open == next => quote = None,
            (None, '\'' | '"') => {
                quote = Some(next);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(rest.next()),
            (None, next) if next.is_whitespace() => words.extend(word.take()),
            (_, next) => word.get_or_insert_default().push(next),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_a_line_each() {
        let text = "// sizes\nN 64\nM=3\n#define FAST\n# define SQUARE(x) ((x) * (x))\n\nNAME  a b\n";
        let expected = ["N=64", "M=3", "FAST", "SQUARE(x)=((x) * (x))", "NAME=a b"];
        assert_eq!(parse_definitions(text), Ok(expected.map(str::to_owned).to_vec()));
        assert_eq!(parse_definitions("A\n#include \"x\"\n"), Err((2, "#include \"x\"".to_owned())));
        assert_eq!(parse_definitions("64 N\n"), Err((1, "64 N".to_owned())));
    }

    #[test]
    fn a_database_has_the_flags_of_its_sources() -> Result<(), String> {
        let text = r#"[
            {"directory": "/p", "file": "a/k.comp", "command": "glslc -DN=\"4 5\" -I inc -O a/k.comp -o k.spv"},
            {"directory": "/p", "file": "b.hlsl", "arguments": ["dxc", "-D", "FAST", "-I../x", "-E", "blur"]}
        ]"#;
        let commands = CompileCommands::parse(text, Path::new("/"))?;
        let strings = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let expected = CommandFlags {
            defines: strings(&["N=4 5"]),
            includes: vec![PathBuf::from("/p/inc")],
            entry: None,
        };
        assert_eq!(commands.flags_of(Path::new("/p/a/../a/k.comp")), Some(&expected));
        let expected = CommandFlags {
            defines: strings(&["FAST"]),
            includes: vec![PathBuf::from("/x")],
            entry: Some("blur".to_owned()),
        };
        assert_eq!(commands.flags_of(Path::new("/p/b.hlsl")), Some(&expected));
        assert_eq!(commands.flags_of(Path::new("/p/c.hlsl")), None);
        Ok(())
    }
}
