//! The files of the page, for programs that serve it.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageFile {
    /// Its name, relative to the page.
    pub name: &'static str,
    pub media: &'static str,
    pub bytes: &'static [u8],
}

macro_rules! page_files {
    ($($name:literal $media:literal,)*) => {
        /// The files of the page, `index.html` first; the module of WebAssembly is not among them.
        pub const PAGE_FILES: &[PageFile] = &[
            $(PageFile { name: $name, media: $media, bytes: include_bytes!(concat!("../page/", $name)) },)*
        ];
    };
}

page_files! {
    "index.html" "text/html; charset=utf-8",
    "style.css" "text/css; charset=utf-8",
    "icon.svg" "image/svg+xml",
    "main.js" "text/javascript; charset=utf-8",
    "codemirror.LICENSE.txt" "text/plain; charset=utf-8",
    "codemirror.js" "text/javascript; charset=utf-8",
    "compare.js" "text/javascript; charset=utf-8",
    "editor.js" "text/javascript; charset=utf-8",
    "engine.js" "text/javascript; charset=utf-8",
    "explanation.js" "text/javascript; charset=utf-8",
    "gallery.js" "text/javascript; charset=utf-8",
    "highlight.js" "text/javascript; charset=utf-8",
    "issue.js" "text/javascript; charset=utf-8",
    "link.js" "text/javascript; charset=utf-8",
    "races.js" "text/javascript; charset=utf-8",
    "steps.js" "text/javascript; charset=utf-8",
    "tar.js" "text/javascript; charset=utf-8",
    "tour.js" "text/javascript; charset=utf-8",
    "view.js" "text/javascript; charset=utf-8",
    "webgpu.js" "text/javascript; charset=utf-8",
    "worker.js" "text/javascript; charset=utf-8",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_listed() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        let mut found: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let mut listed: Vec<&str> = PAGE_FILES.iter().map(|file| file.name).collect();
        found.sort();
        listed.sort_unstable();
        assert_eq!(found, listed);
    }
}
