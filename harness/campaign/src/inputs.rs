//! Which tests are meant: files, folders, embedded tests and suites.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use globset::GlobBuilder;
use litmus::Suite;
use litmus::corpus::{self, Entry};
use litmus::syntax::MAX_TEXT_BYTES;
use walkdir::WalkDir;

use crate::source::{Source, Unreadable};
use crate::{Failure, cts};

/// How the ids of the programs of CTS names begin; globs over other ids do not choose them.
pub const CTS_FOLDER: &str = "cts/";

/// Extensions of tests, by which folders are searched.
const EXTENSIONS: [&str; 2] = ["litmus", "test"];

/// The sources that `arguments`, `suite` and a name of the CTS name, in the order of files; those of `default` when they name nothing.
///
/// # Errors
/// When there is no such suite.
pub fn collect(
    arguments: &[String],
    suite: Option<&str>,
    cts_name: Option<&str>,
    default: impl FnOnce() -> Result<Vec<Source>, Failure>,
) -> Result<Vec<Source>, Failure> {
    let mut sources = Vec::new();
    if let Some(name) = suite {
        sources.extend(of_suite(name)?);
    }
    for argument in arguments {
        sources.extend(of_argument(argument));
    }
    if let Some(pattern) = cts_name {
        sources.extend(cts::named(pattern)?);
    }
    if suite.is_none() && arguments.is_empty() && cts_name.is_none() {
        sources = default()?;
    }
    sources.sort_by(|a, b| (&a.file, &a.variant).cmp(&(&b.file, &b.variant)));
    sources.dedup_by(|a, b| a.file == b.file && a.variant == b.variant);
    make_ids_unique(&mut sources);
    Ok(sources)
}

/// The tests of an embedded suite.
///
/// # Errors
/// When there is no such suite, or it is wrong.
pub fn of_suite(name: &str) -> Result<Vec<Source>, Failure> {
    if name == corpus::PROGRESS_SUITE {
        return Ok(corpus::progress_suite().iter().map(embedded).collect());
    }
    let suites = corpus::suites();
    let Some(entry) = suites.iter().find(|suite| suite.id == name) else {
        let mut known: Vec<&str> = suites.iter().map(|suite| suite.id.as_str()).collect();
        known.push(corpus::PROGRESS_SUITE);
        return Err(Failure::input_message(format!(
            "unknown suite `{name}`: there are {}",
            known.join(", ")
        )));
    };
    let tests = corpus::tests();
    let suite = Suite::parse(entry.text, &entry.path).map_err(Failure::input)?;
    let chosen: BTreeSet<&str> = suite
        .select(tests.iter().map(|test| test.id.as_str()))
        .map_err(Failure::input)?
        .into_iter()
        .collect();
    Ok(tests.iter().filter(|test| chosen.contains(test.id.as_str())).map(embedded).collect())
}

/// Every embedded test, those for models alone included.
pub fn all_embedded() -> Vec<Source> {
    corpus::tests().iter().chain(&corpus::model_only()).chain(&corpus::progress()).map(embedded).collect()
}

fn embedded(entry: &Entry) -> Source {
    Source {
        id: entry.id.clone(),
        file: format!("litmus/{}", entry.path),
        argument: entry.id.clone(),
        variant: String::new(),
        text: Ok(entry.text.to_owned()),
    }
}

/// The sources of one argument: a file, a folder, or embedded tests. Never empty: what names nothing is a source
/// without a text.
pub fn of_argument(argument: &str) -> Vec<Source> {
    let path = Path::new(argument);
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => of_folder(argument),
        Ok(_) => vec![of_file(path, stem(path))],
        Err(error) => {
            let found: Vec<Source> = match_embedded(argument);
            if !found.is_empty() {
                return found;
            }
            if let Some((tests, variant)) = argument.rsplit_once('@').filter(|(tests, _)| !tests.is_empty()) {
                return of_argument(tests).into_iter().map(|source| source.told(variant)).collect();
            }
            let what = if error.kind() == std::io::ErrorKind::NotFound {
                "no such file, and no embedded test has this id".to_owned()
            } else {
                error.to_string()
            };
            vec![without_text(argument, what)]
        }
    }
}

/// Embedded tests by id or by a glob over ids.
fn match_embedded(argument: &str) -> Vec<Source> {
    let all =
        if argument.starts_with(CTS_FOLDER) { cts::chosen(|id| id == argument) } else { all_embedded() };
    if let Some(exact) = all.iter().find(|source| source.id == argument) {
        return vec![exact.clone()];
    }
    match GlobBuilder::new(argument).literal_separator(true).build() {
        Ok(glob) => {
            let glob = glob.compile_matcher();
            let all =
                if argument.starts_with(CTS_FOLDER) { cts::chosen(|id| glob.is_match(id)) } else { all };
            all.into_iter().filter(|source| glob.is_match(&source.id)).collect()
        }
        Err(_) => Vec::new(),
    }
}

fn of_folder(argument: &str) -> Vec<Source> {
    let root = Path::new(argument);
    let mut sources = Vec::new();
    for entry in WalkDir::new(root).follow_links(true).sort_by_file_name() {
        match entry {
            Ok(entry) if !entry.file_type().is_dir() && has_test_extension(entry.path()) => {
                let inner = entry.path().strip_prefix(root).unwrap_or(entry.path());
                let id = inner.with_extension("").to_string_lossy().replace('\\', "/");
                sources.push(of_file(entry.path(), id));
            }
            Ok(_) => {}
            Err(error) => {
                let path = error.path().unwrap_or(root).to_string_lossy().into_owned();
                sources.push(without_text(&path, error.to_string()));
            }
        }
    }
    if sources.is_empty() {
        sources.push(without_text(argument, "no .litmus or .test file in this folder".to_owned()));
    }
    sources
}

fn has_test_extension(path: &Path) -> bool {
    path.extension().is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known))
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn without_text(file: &str, what: String) -> Source {
    Source {
        id: file.to_owned(),
        file: file.to_owned(),
        argument: file.to_owned(),
        variant: String::new(),
        text: Err(Unreadable { what, line: 1, column: 1 }),
    }
}

fn of_file(path: &Path, id: String) -> Source {
    let file = path.to_string_lossy().into_owned();
    Source { id, argument: file.clone(), file, variant: String::new(), text: read(path) }
}

fn read(path: &Path) -> Result<String, Unreadable> {
    let at_start = |what: String| Unreadable { what, line: 1, column: 1 };
    let metadata = std::fs::metadata(path).map_err(|error| at_start(error.to_string()))?;
    // Opening a pipe would wait for whoever writes to it.
    if !metadata.is_file() {
        return Err(at_start("not a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_TEXT_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(|error| at_start(error.to_string()))?;
    if bytes.len() > MAX_TEXT_BYTES {
        return Err(at_start(format!("larger than {} KiB", MAX_TEXT_BYTES / 1024)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let bytes = error.into_bytes();
        let before = bytes.get(..valid).unwrap_or_default();
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let column = 1 + String::from_utf8_lossy(before.get(start..).unwrap_or_default()).chars().count();
        Unreadable { what: "not UTF-8".to_owned(), line: clamp(line), column: clamp(column) }
    })
}

fn clamp(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Tests of the same id from different folders are told apart by their whole paths.
fn make_ids_unique(sources: &mut [Source]) {
    let mut seen = BTreeSet::new();
    let twice: BTreeSet<String> =
        sources.iter().filter(|source| !seen.insert(source.id.clone())).map(|s| s.id.clone()).collect();
    for source in sources.iter_mut().filter(|source| twice.contains(&source.id)) {
        source.id = Path::new(&source.file).with_extension("").to_string_lossy().into_owned();
        if !source.variant.is_empty() {
            source.id = format!("{}@{}", source.id, source.variant);
        }
    }
}
