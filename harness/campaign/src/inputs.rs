//! Finds the tests that a command line names: files, folders, embedded tests and suites.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use litmus::Suite;
use litmus::corpus::{self, EmbeddedFile};
use litmus::suite::{MAX_VARIANTS, expand_braces};
use litmus::syntax::MAX_TEXT_BYTES;
use results::escape;
use walkdir::WalkDir;

use crate::shader::source::is_shader;
use crate::similar::{did_you_mean, most_similar};
use crate::source::{LoadedTest, SourceOrigin, SourceReadError, TestSource};
use crate::{Failure, cts};

/// The prefix of the ids of CTS programs. Globs without it do not match them.
pub const CTS_FOLDER: &str = "cts/";

/// The file extensions of tests in folders.
const TEST_EXTENSIONS: [&str; 2] = ["litmus", "test"];

/// Returns the sources of `arguments`, `suite` and `cts_name`, sorted by file; those of `default` if all are
/// empty.
///
/// # Errors
/// If the suite or the CTS name does not exist.
pub fn collect(
    arguments: &[String],
    suite: Option<&str>,
    cts_name: Option<&str>,
    default: impl FnOnce() -> Result<Vec<TestSource>, Failure>,
) -> Result<Vec<TestSource>, Failure> {
    let mut sources = Vec::new();
    if let Some(name) = suite {
        sources.extend(suite_tests(name)?);
    }
    for argument in arguments {
        sources.extend(argument_sources(argument));
    }
    if let Some(pattern) = cts_name {
        sources.extend(cts::find_by_name(pattern)?);
    }
    if suite.is_none() && arguments.is_empty() && cts_name.is_none() {
        sources = default()?;
    }
    sources.sort_by(|a, b| (&a.file, &a.variant, &a.origin).cmp(&(&b.file, &b.variant, &b.origin)));
    let mut seen_sources = BTreeSet::new();
    sources.retain(|source| seen_sources.insert((source.origin.clone(), source.variant.clone())));
    make_ids_unique(&mut sources);
    Ok(sources)
}

/// Returns the tests of an embedded suite.
///
/// # Errors
/// If the suite does not exist, or it is invalid.
pub fn suite_tests(name: &str) -> Result<Vec<TestSource>, Failure> {
    if name == corpus::PROGRESS_SUITE {
        return Ok(corpus::progress_suite().iter().map(embedded_source).collect());
    }
    let suites = corpus::suites();
    let Some(entry) = suites.iter().find(|suite| suite.id == name) else {
        let mut known_names: Vec<&str> = suites.iter().map(|suite| suite.id.as_str()).collect();
        known_names.push(corpus::PROGRESS_SUITE);
        let suggestion = did_you_mean(name, known_names.iter().copied());
        return Err(Failure::input_message(format!(
            "unknown suite `{name}`{suggestion}: there are {}",
            known_names.join(", ")
        )));
    };
    let tests = corpus::tests();
    let suite = Suite::parse(entry.text, &entry.path).map_err(Failure::input)?;
    let selected_ids = suite.select(tests.iter().map(|test| test.id.as_str())).map_err(Failure::input)?;
    let by_id: BTreeMap<&str, &EmbeddedFile> = tests.iter().map(|test| (test.id.as_str(), test)).collect();
    let sources = selected_ids.iter().filter_map(|chosen| {
        let (id, variant) = chosen.split_once('@').unwrap_or((chosen, ""));
        let source = embedded_source(by_id.get(id)?);
        Some(source.with_variant(variant))
    });
    Ok(sources.collect())
}

/// Returns every embedded test, including those for models only.
pub fn embedded_tests() -> Vec<TestSource> {
    corpus::tests()
        .iter()
        .chain(&corpus::model_only_tests())
        .chain(&corpus::progress_tests())
        .map(embedded_source)
        .collect()
}

fn embedded_source(entry: &EmbeddedFile) -> TestSource {
    TestSource {
        id: entry.id.clone(),
        file: format!("litmus/{}", entry.path),
        argument: entry.id.clone(),
        variant: String::new(),
        origin: SourceOrigin::Embedded(entry.id.clone()),
        text: Ok(entry.text.to_owned()),
    }
}

/// Returns the sources of one argument: a file, a folder, or embedded tests. An unknown argument gives a
/// source with an error, so that the list is never empty.
pub fn argument_sources(argument: &str) -> Vec<TestSource> {
    if argument == STANDARD_INPUT {
        return vec![standard_input_source()];
    }
    let path = Path::new(argument);
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => folder_sources(argument),
        Ok(_) if is_shader(argument) => {
            let commands = "`race`, `lint`, `check`, `explain`, `refine` and `run` read shaders";
            vec![unreadable_source(
                argument,
                format!("a shader, where a litmus test is expected; {commands}"),
            )]
        }
        Ok(_) => vec![file_source(path, file_stem_text(path))],
        Err(error) => {
            let found: Vec<TestSource> = match_embedded(argument);
            if !found.is_empty() {
                return found;
            }
            if let Some((tests, variant)) = argument.rsplit_once('@').filter(|(tests, _)| !tests.is_empty()) {
                let Some(variants) = expand_braces(variant) else {
                    return vec![unreadable_source(argument, format!("more than {MAX_VARIANTS} variants"))];
                };
                let with_variants = |source: &TestSource| -> Vec<TestSource> {
                    variants.iter().map(|variant| source.clone().with_variant(variant)).collect()
                };
                return argument_sources(tests).iter().flat_map(with_variants).collect();
            }
            let what = if error.kind() == std::io::ErrorKind::NotFound {
                unknown_test_error(argument)
            } else {
                error.to_string()
            };
            vec![unreadable_source(argument, what)]
        }
    }
}

/// Returns the error for a word that is neither a file nor an embedded test, with a suggestion.
fn unknown_test_error(argument: &str) -> String {
    let what = "no such file, and no embedded test has this id";
    let all = embedded_tests();
    let argument = argument.trim_end_matches('/');
    let is_in_family =
        |id: &str| id.split_once('/').is_some_and(|(family, _)| family.eq_ignore_ascii_case(argument));
    if let Some(source) = all.iter().find(|source| is_in_family(&source.id)) {
        let family = source.id.split('/').next().unwrap_or_default();
        return format!("{what}; did you mean its family, `{family}/*`?");
    }
    let base_name = |id: &str| id.rsplit('/').next().unwrap_or(id).to_ascii_lowercase();
    let requested_name = base_name(argument);
    let same_name =
        all.iter().find(|source| base_name(&source.id) == requested_name).map(|source| source.id.as_str());
    match same_name.or_else(|| most_similar(argument, all.iter().map(|source| source.id.as_str()))) {
        Some(id) => format!("{what}; did you mean `{id}`?"),
        None => format!("{what}: search with `vk-litmus tests WORD`"),
    }
}

/// Returns embedded tests by id or by a glob over ids.
pub fn match_embedded(argument: &str) -> Vec<TestSource> {
    let all = if argument.starts_with(CTS_FOLDER) {
        cts::select_programs(|id| id == argument)
    } else {
        embedded_tests()
    };
    if let Some(exact) = all.iter().find(|source| source.id == argument) {
        return vec![exact.clone()];
    }
    match litmus::suite::glob_set([argument]) {
        Ok(glob) => {
            let all = if argument.starts_with(CTS_FOLDER) {
                cts::select_programs(|id| glob.is_match(id))
            } else {
                all
            };
            all.into_iter().filter(|source| glob.is_match(&source.id)).collect()
        }
        Err(_) => Vec::new(),
    }
}

fn folder_sources(argument: &str) -> Vec<TestSource> {
    let root = Path::new(argument);
    let mut sources = Vec::new();
    for entry in WalkDir::new(root).follow_links(true).sort_by_file_name() {
        match entry {
            // Pipes, sockets and devices in a folder are skipped, because reading them could block.
            Ok(entry) if has_test_extension(entry.path()) && is_special(entry.file_type()) => {
                let path = path_to_text(entry.path());
                tracing::warn!("{} is skipped: not a regular file", escape::escape_line(&path));
            }
            Ok(entry) if !entry.file_type().is_dir() && has_test_extension(entry.path()) => {
                let inner = entry.path().strip_prefix(root).unwrap_or(entry.path());
                let id = path_to_text(&inner.with_extension("")).replace('\\', "/");
                sources.push(file_source(entry.path(), id));
            }
            Ok(_) => {}
            Err(error) => {
                let path = path_to_text(error.path().unwrap_or(root));
                sources.push(unreadable_source(&path, error.to_string()));
            }
        }
    }
    if sources.is_empty() {
        sources.push(unreadable_source(argument, "no .litmus or .test file in this folder".to_owned()));
    }
    sources
}

fn has_test_extension(path: &Path) -> bool {
    path.extension().is_some_and(|extension| TEST_EXTENSIONS.iter().any(|known| extension == *known))
}

fn file_stem_text(path: &Path) -> String {
    path_to_text(Path::new(path.file_stem().unwrap_or(path.as_os_str())))
}

/// Converts a path to text. Invalid UTF-8 is escaped as `\xff`, so that different names stay different.
fn path_to_text(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        text += chunk.valid();
        for byte in chunk.invalid() {
            text += &format!("\\x{byte:02x}");
        }
    }
    text
}

fn unreadable_source(file: &str, what: String) -> TestSource {
    TestSource {
        id: file.to_owned(),
        file: file.to_owned(),
        argument: file.to_owned(),
        variant: String::new(),
        origin: SourceOrigin::File(PathBuf::from(file)),
        text: Err(SourceReadError { what, line: 1, column: 1 }),
    }
}

fn file_source(path: &Path, id: String) -> TestSource {
    let file = path_to_text(path);
    let origin = SourceOrigin::File(path.canonicalize().unwrap_or_else(|_| path.to_owned()));
    TestSource {
        id,
        argument: file.clone(),
        file,
        variant: String::new(),
        origin,
        text: decode_text(read_limited(path, MAX_TEXT_BYTES as u64)),
    }
}

/// The argument for standard input.
const STANDARD_INPUT: &str = "-";
/// Time limit for reading a test from a named pipe.
const PIPE_TIMEOUT: Duration = Duration::from_secs(10);

fn standard_input_source() -> TestSource {
    TestSource {
        id: "stdin".to_owned(),
        file: STANDARD_INPUT.to_owned(),
        argument: STANDARD_INPUT.to_owned(),
        variant: String::new(),
        origin: SourceOrigin::StandardInput,
        text: decode_text(read_stream(std::io::stdin(), MAX_TEXT_BYTES as u64)),
    }
}

fn is_special(kind: std::fs::FileType) -> bool {
    !kind.is_file() && !kind.is_dir() && !kind.is_symlink()
}

/// Reads at most one byte more than a limit, so that the caller can detect a file that is too long.
///
/// # Errors
/// Returns those of the file, and a timeout for a pipe without a writer.
pub fn read_limited(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    match std::fs::metadata(path)?.file_type() {
        kind if is_special(kind) => read_pipe(path.to_owned(), most),
        _ => read_stream(File::open(path)?, most),
    }
}

fn read_stream(stream: impl Read, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a pipe in a second thread, because opening it blocks until a writer opens it.
fn read_pipe(path: PathBuf, most: u64) -> std::io::Result<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::Builder::new().spawn(move || {
        // The receiver may have timed out.
        let _ = sender.send(File::open(path).and_then(|file| read_stream(file, most)));
    })?;
    receiver.recv_timeout(PIPE_TIMEOUT).unwrap_or_else(|_| {
        let what = format!("its writer did not close it within {} s", PIPE_TIMEOUT.as_secs());
        Err(std::io::Error::new(std::io::ErrorKind::TimedOut, what))
    })
}

fn decode_text(bytes: std::io::Result<Vec<u8>>) -> Result<String, SourceReadError> {
    let error_at_start = |what: String| SourceReadError { what, line: 1, column: 1 };
    let bytes = bytes.map_err(|error| error_at_start(error.to_string()))?;
    if bytes.len() > MAX_TEXT_BYTES {
        return Err(error_at_start(format!("larger than {} KiB", MAX_TEXT_BYTES / 1024)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let bytes = error.into_bytes();
        let before = bytes.get(..valid).unwrap_or_default();
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let column = 1 + String::from_utf8_lossy(before.get(start..).unwrap_or_default()).chars().count();
        SourceReadError {
            what: "not UTF-8".to_owned(),
            line: saturating_u32(line),
            column: saturating_u32(column),
        }
    })
}

fn saturating_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Gives each test a unique id. Files with the same id get their whole path, then also their extension. Ids
/// that are still equal get a number (`x#2`).
fn make_ids_unique(sources: &mut [TestSource]) {
    for with_extension in [false, true] {
        let duplicate_ids = find_duplicate_ids(sources);
        if duplicate_ids.is_empty() {
            return;
        }
        for source in sources.iter_mut().filter(|source| duplicate_ids.contains(&source.id)) {
            if matches!(source.origin, SourceOrigin::File(_)) {
                let path = Path::new(&source.file);
                let id = if with_extension { path.to_owned() } else { path.with_extension("") };
                source.id = id.to_string_lossy().into_owned();
                if !source.variant.is_empty() {
                    source.id = format!("{}@{}", source.id, source.variant);
                }
            }
        }
    }
    let mut used_ids = BTreeSet::new();
    for source in sources {
        let (base, mut number) = (source.id.clone(), 2);
        while !used_ids.insert(source.id.clone()) {
            source.id = format!("{base}#{number}");
            number += 1;
        }
    }
}

fn find_duplicate_ids(sources: &[TestSource]) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    sources.iter().filter(|source| !seen.insert(&source.id)).map(|source| source.id.clone()).collect()
}

/// Returns the only test that an argument names.
///
/// # Errors
/// If it names none or several, or the test is invalid.
pub fn load_single_test(argument: &str) -> Result<LoadedTest, Failure> {
    let mut sources = argument_sources(argument);
    match (sources.pop(), sources.is_empty()) {
        (Some(source), true) => source.load().map_err(|rejected| rejected.failure),
        _ => Err(Failure::input_message(format!("`{argument}` names several tests: name one"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the unique ids of sources given by file, id and variant.
    fn unique_ids(sources: &[(&str, &str, &str)]) -> Vec<String> {
        let mut sources: Vec<TestSource> = sources
            .iter()
            .map(|(file, id, variant)| TestSource {
                id: if variant.is_empty() { (*id).to_owned() } else { format!("{id}@{variant}") },
                file: (*file).to_owned(),
                argument: String::new(),
                variant: (*variant).to_owned(),
                origin: match file.strip_prefix("embedded:") {
                    Some(id) => SourceOrigin::Embedded(id.to_owned()),
                    None => SourceOrigin::File(PathBuf::from(file)),
                },
                text: Ok(String::new()),
            })
            .collect();
        make_ids_unique(&mut sources);
        sources.into_iter().map(|source| source.id).collect()
    }

    #[test]
    fn ids_are_made_unique_by_path_and_extension() {
        type Case<'a> = (&'a [(&'a str, &'a str, &'a str)], &'a [&'a str]);
        let cases: [Case<'_>; 6] = [
            (&[("a/x.litmus", "x", ""), ("a/y.litmus", "y", "")], &["x", "y"]),
            (&[("a/x.litmus", "x", ""), ("b/x.litmus", "x", "")], &["a/x", "b/x"]),
            (&[("x.litmus", "x", ""), ("x.test", "x", "")], &["x.litmus", "x.test"]),
            // The folder walk of `.` gives `d1/x` to another file than the one at that path.
            (
                &[("./d1/x.litmus", "d1/x", ""), ("d1/x.litmus", "x", ""), ("d2/x.litmus", "x", "")],
                &["./d1/x.litmus", "d1/x.litmus", "d2/x"],
            ),
            (&[("embedded:mp/MP", "mp/MP", ""), ("mp/MP.litmus", "mp/MP", "")], &["mp/MP", "mp/MP.litmus"]),
            (&[("a@b", "a@b", ""), ("a", "a", "b"), ("a@b", "a@b", "")], &["a@b", "a@b#2", "a@b#3"]),
        ];
        for (sources, expected) in cases {
            assert_eq!(unique_ids(sources), expected);
        }
    }

    #[cfg(unix)]
    #[test]
    fn names_that_are_not_utf8_are_distinct() {
        use std::os::unix::ffi::OsStrExt;
        let name = |bytes: &[u8]| path_to_text(Path::new(std::ffi::OsStr::from_bytes(bytes)));
        assert_eq!((name(b"a\xff"), name(b"a\xfe")), ("a\\xff".to_owned(), "a\\xfe".to_owned()));
    }
}
