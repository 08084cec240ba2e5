//! Finds the files that a source includes, in the order in which compilers search.
//!
//! Conditional compilation is ignored, so the result may list files that the compiler never reads.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::scan::{blank_comments, directive_argument};

/// The maximum number of included files.
const MAX_FILES: usize = 2_000;
/// The maximum size of an included file in bytes.
const MAX_BYTES: u64 = 8 << 20;
/// The maximum number of folders above a source in which missing files are looked for.
const MAX_ANCESTORS: usize = 6;
/// The maximum number of directory entries that are read to find a missing file.
const MAX_ENTRIES: usize = 20_000;

/// A file that a source includes.
#[derive(Clone, Debug)]
pub struct IncludedFile {
    pub path: PathBuf,
    pub text: String,
}

/// An include directive whose file was not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingInclude {
    /// The file with the directive.
    pub includer: PathBuf,
    pub line: u32,
    /// The name in the directive.
    pub header: String,
}

/// The files that a source includes, directly and through others.
#[derive(Clone, Debug, Default)]
pub struct IncludeTree {
    pub files: Vec<IncludedFile>,
    /// The directives without a file.
    pub missing: Vec<MissingInclude>,
    /// True if a directive names its file by a macro, which is not expanded here.
    pub has_macro: bool,
}

impl IncludeTree {
    /// Reads the files that a source includes. `folders` are searched after the folders of the including file
    /// and of the source.
    pub fn read(source: &Path, text: &str, folders: &[PathBuf]) -> IncludeTree {
        let mut tree = IncludeTree::default();
        let mut visited = BTreeSet::from([source.to_owned()]);
        let mut worklist = vec![(source.to_owned(), text.to_owned())];
        while let Some((includer, text)) = worklist.pop() {
            for (line, argument) in include_directives(&blank_comments(&text)) {
                let Some(header) = header_name(&argument) else {
                    tree.has_macro = true;
                    continue;
                };
                let own_folders = [folder_of(&includer), folder_of(source)];
                let mut candidates = own_folders.iter().chain(folders).map(|folder| folder.join(header));
                let Some(path) = candidates.find(|path| path.is_file()) else {
                    let (includer, header) = (includer.clone(), header.to_owned());
                    tree.missing.push(MissingInclude { includer, line, header });
                    continue;
                };
                if tree.files.len() >= MAX_FILES || !visited.insert(path.clone()) {
                    continue;
                }
                if fs::metadata(&path).is_ok_and(|file| file.len() <= MAX_BYTES)
                    && let Ok(bytes) = fs::read(&path)
                {
                    let text = decode_text(&bytes).0;
                    tree.files.push(IncludedFile { path: path.clone(), text: text.clone() });
                    worklist.push((path, text));
                }
            }
        }
        tree
    }
}

/// The directives of preprocessors that open no file.
const CLOSED_DIRECTIVES: [&str; 15] = [
    "",
    "define",
    "elif",
    "else",
    "endif",
    "error",
    "extension",
    "if",
    "ifdef",
    "ifndef",
    "line",
    "pragma",
    "undef",
    "version",
    "warning",
];

/// A directive that makes a compiler open a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDirective {
    pub line: u32,
    pub word: String,
}

/// Finds the first directive by which some compiler may open a file, for sources that must not.
///
/// Comments and strings of several lines are searched too, since compilers differ in where these end.
pub fn find_file_directive(text: &str) -> Option<FileDirective> {
    // Digraphs and trigraphs are other forms of the mark and of the backslash that continues a line.
    let text = text.replace("??=", "#").replace("%:", "#").replace("??/", "\\");
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut joined: Vec<(char, u32)> = Vec::new();
    let mut line = 1;
    let mut rest = text.as_str();
    while let Some(next) = rest.chars().next() {
        rest = &rest[next.len_utf8()..];
        if next == '\\' {
            let after = rest.trim_start_matches(|next| next != '\n' && is_blank(next));
            if let Some(after) = after.strip_prefix('\n') {
                rest = after;
                line += 1;
                continue;
            }
        }
        joined.push((next, line));
        line += u32::from(next == '\n');
    }
    for mark in (0..joined.len()).filter(|index| joined[*index].0 == '#') {
        // A directive is the first on its line, apart from spaces and comments.
        let before =
            joined[..mark].iter().rev().map(|(letter, _)| *letter).take_while(|letter| *letter != '\n');
        let mut before = before.skip_while(|letter| is_blank(*letter));
        if !matches!((before.next(), before.next()), (None, _) | (Some('/'), Some('*'))) {
            continue;
        }
        let word: String = joined[skip_blanks(&joined, mark + 1)..]
            .iter()
            .map(|(letter, _)| *letter)
            .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
            .collect();
        let is_number = word.starts_with(|first: char| first.is_ascii_digit());
        if !is_number && !CLOSED_DIRECTIVES.contains(&word.as_str()) {
            return Some(FileDirective { line: joined[mark].1, word });
        }
    }
    None
}

/// Returns true for characters that compilers skip before a directive.
fn is_blank(letter: char) -> bool {
    letter.is_whitespace() || letter.is_control() || letter == '\u{feff}'
}

/// Returns the place after spaces and comments, which separate the mark of a directive from its word.
fn skip_blanks(text: &[(char, u32)], mut at: usize) -> usize {
    let letter = |index: usize| text.get(index).map(|(letter, _)| *letter);
    loop {
        match (letter(at), letter(at + 1)) {
            (Some('/'), Some('*')) => {
                let end = (at + 2..text.len())
                    .find(|end| (letter(*end), letter(end + 1)) == (Some('*'), Some('/')));
                at = end.map_or(text.len(), |end| end + 2);
            }
            (Some(blank), _) if blank != '\n' && is_blank(blank) => at += 1,
            _ => return at,
        }
    }
}

/// Returns a text without its byte order mark, and true if it has one.
pub fn decode_text(bytes: &[u8]) -> (String, bool) {
    let rest = bytes.strip_prefix("\u{feff}".as_bytes());
    (String::from_utf8_lossy(rest.unwrap_or(bytes)).into_owned(), rest.is_some())
}

/// Returns the folder of a file, which is `.` for a bare name.
pub fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Returns true if a text without comments has an include directive.
pub fn has_include(text: &str) -> bool {
    text.lines().any(|line| directive_argument(line, "include").is_some())
}

/// Returns the lines and arguments of include directives in a text without comments.
fn include_directives(text: &str) -> Vec<(u32, String)> {
    let numbered = text.lines().zip(1..);
    let found =
        numbered.filter_map(|(line, number)| Some((number, directive_argument(line, "include")?.to_owned())));
    found.collect()
}

/// Returns the name in `"name"` or `<name>`.
fn header_name(argument: &str) -> Option<&str> {
    let (close, rest) = match argument.chars().next()? {
        '"' => ('"', &argument[1..]),
        '<' => ('>', &argument[1..]),
        _ => return None,
    };
    rest.split_once(close).map(|(name, _)| name).filter(|name| !name.is_empty())
}

/// Returns a folder near a source that has a missing file, for `-I`. Folders closer to the source are
/// preferred.
pub fn find_folder(source: &Path, header: &str) -> Option<PathBuf> {
    let header_path = Path::new(header);
    let name = header_path.file_name()?;
    let depth = header_path.components().count();
    let mut entries = 0;
    let mut folder = folder_of(source).canonicalize().ok()?;
    let start = folder.clone();
    for _ in 0..MAX_ANCESTORS {
        let files = WalkDir::new(&folder).sort_by_file_name().into_iter().filter_entry(|entry| {
            !entry.file_name().to_string_lossy().starts_with('.') || entry.depth() == 0
        });
        for entry in files {
            entries += 1;
            if entries > MAX_ENTRIES {
                return None;
            }
            let Ok(entry) = entry else { continue };
            if entry.file_name() == name && entry.path().ends_with(header_path) {
                let found = entry.path().ancestors().nth(depth)?;
                return Some(
                    relative_path(&start, found)
                        .map_or(found.to_owned(), |path| folder_of(source).join(path)),
                );
            }
        }
        // The root of a repository ends the project.
        if folder.join(".git").exists() || !folder.pop() {
            return None;
        }
    }
    None
}

/// Returns the path from one folder to another, if they share more than the root.
fn relative_path(from: &Path, to: &Path) -> Option<PathBuf> {
    let shared = from.components().zip(to.components()).take_while(|(one, other)| one == other).count();
    if shared < 2 {
        return None;
    }
    let up = from.components().skip(shared).map(|_| Path::new("..").to_owned());
    Some(up.chain(to.components().skip(shared).map(|part| PathBuf::from(part.as_os_str()))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn includes_are_found_where_compilers_search() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("shaders/parts"))?;
        fs::create_dir_all(at("common/math"))?;
        fs::write(at("shaders/parts/a.h"), "#include \"b.h\"\n#include \"c.h\"\n")?;
        fs::write(at("shaders/parts/b.h"), "int b;\n")?;
        fs::write(at("shaders/c.h"), "int c; // #include \"d.h\"\n")?;
        fs::write(at("common/math/fft.h"), "int fft;\n")?;
        let text = "#version 450\n#include \"parts/a.h\"\n# include <math/fft.h>\n#include NAME\n";
        let source = at("shaders/k.comp");
        fs::write(&source, text)?;

        let tree = IncludeTree::read(&source, text, &[]);
        assert_eq!(tree.files.len(), 3);
        assert!(tree.has_macro);
        let [missing] = &tree.missing[..] else { panic!("{:?}", tree.missing) };
        assert_eq!((missing.line, missing.header.as_str()), (3, "math/fft.h"));

        let found = find_folder(&source, "math/fft.h");
        assert_eq!(found.as_deref(), Some(at("shaders/../common").as_path()));
        let tree = IncludeTree::read(&source, text, &found.into_iter().collect::<Vec<_>>());
        assert_eq!((tree.files.len(), tree.missing.len()), (4, 0));
        Ok(())
    }

    #[test]
    fn directives_that_open_files_are_found_in_every_form() {
        for hidden in [
            "#include \"/etc/passwd\"",
            "  #\t include <a>",
            "#inc\\\nlude \"a\"",
            "#inc\\ \r\nlude \"a\"",
            "# /* a \n b */ include \"a\"",
            "%:include \"a\"",
            "??=inc??/\nlude \"a\"",
            "const char* a = \"/*\";\n#include \"a\" // */",
            "#include_next <a>",
            "#import \"a\"",
            "#embed \"a\"",
            "int a;\r#include \"a\"",
            "\0#include \"a\"",
        ] {
            let found = find_file_directive(&format!("int a;\n{hidden}\nint b;"));
            assert!(found.is_some_and(|found| (2..=3).contains(&found.line)), "{hidden}");
        }
        let harmless = "#version 450\n#extension all : warn\n#define PASTE(a, b) a##b // # of\n#if 1\n#\n#elif 0\n# 7 \"a.comp\"\n#endif\n";
        assert_eq!(find_file_directive(harmless), None);
    }
}
