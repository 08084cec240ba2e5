//! Mutation of inputs: pieces of a corpus are changed, duplicated, removed, or copied from another input.

/// A random number generator (xorshift64*), so that a seed determines every input.
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Numbers {
        Numbers(seed | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() >> 33) as usize % end.max(1)
    }

    fn choose<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        let at = self.below(list.len());
        list.get(at)
    }
}

/// Boundary values of number ranges.
const EDGES: [&str; 16] = [
    "0",
    "-1",
    "1",
    "255",
    "256",
    "65536",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "0xffffffffffffffff",
    "1e999",
    "99999999999999999999999999",
    "",
];
/// Boundary values as SPIR-V words.
const WORDS: [u32; 8] = [0, 1, 2, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x0001_0000, 0xffff];
/// Largest size of an input in bytes.
const MAX_INPUT_BYTES: usize = 1 << 16;

/// Returns a random range of an input.
fn random_range(numbers: &mut Numbers, bytes: &[u8], most: usize) -> std::ops::Range<usize> {
    let start = numbers.below(bytes.len() + 1);
    let length = numbers.below(most.min(bytes.len() - start) + 1);
    start..start + length
}

/// Returns the words and punctuation marks of a text.
fn tokens(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$');
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        at += 1;
        if is_word(bytes[start]) {
            while at < bytes.len() && is_word(bytes[at]) {
                at += 1;
            }
        }
        if !bytes[start].is_ascii_whitespace() {
            found.push(start..at);
        }
    }
    found
}

/// Mutates a text of the corpus.
pub fn text(numbers: &mut Numbers, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = numbers.choose(corpus).cloned().unwrap_or_default();
    for _ in 0..=numbers.below(4) {
        let other = numbers.choose(corpus).cloned().unwrap_or_default();
        let (at, from) = (random_range(numbers, &bytes, 24), random_range(numbers, &other, 48));
        let (own_tokens, foreign) = (tokens(&bytes), tokens(&other));
        let new: (std::ops::Range<usize>, Vec<u8>) = match numbers.below(10) {
            // Flips a bit or changes a byte.
            0 => {
                let start = at.start.min(bytes.len().saturating_sub(1));
                let flipped = bytes.get(start).map(|byte| byte ^ (1 << numbers.below(8)));
                (start..start + flipped.iter().len(), flipped.into_iter().collect())
            }
            1 => (at.start..at.start, vec![numbers.next() as u8]),
            // Removes, duplicates or copies pieces.
            2 => (at, Vec::new()),
            3 => (at.end..at.end, bytes[at].to_vec()),
            4 => (at, other[from].to_vec()),
            5 => {
                let repeated = bytes[at.clone()].repeat(1 + numbers.below(400));
                (at, repeated)
            }
            // Replaces words by words.
            6 | 7 => match (numbers.choose(&own_tokens), numbers.choose(&foreign)) {
                (Some(here), Some(there)) => (here.clone(), other[there.clone()].to_vec()),
                _ => (at, Vec::new()),
            },
            8 => match numbers.choose(&own_tokens) {
                Some(here) => (here.clone(), EDGES[numbers.below(EDGES.len())].as_bytes().to_vec()),
                None => (at, Vec::new()),
            },
            _ => (bytes.len().min(at.start)..bytes.len(), Vec::new()),
        };
        bytes.splice(new.0, new.1);
        bytes.truncate(MAX_INPUT_BYTES);
    }
    bytes
}

/// Mutates a module of the corpus.
pub fn module(numbers: &mut Numbers, corpus: &[Vec<u8>]) -> Vec<u8> {
    let words = |bytes: &[u8]| -> Vec<u32> {
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
    };
    let mut module = words(&numbers.choose(corpus).cloned().unwrap_or_default());
    for _ in 0..=numbers.below(3) {
        let other = words(&numbers.choose(corpus).cloned().unwrap_or_default());
        let at = numbers.below(module.len());
        let Some(word) = module.get(at).copied() else { break };
        match numbers.below(8) {
            0 => module[at] = word ^ (1 << numbers.below(32)),
            1 => module[at] = WORDS[numbers.below(WORDS.len())],
            2 => module[at] = word.wrapping_add(1),
            3 => module[at] = word.wrapping_sub(1),
            // Another word of the module: usually the id of another item.
            4 | 5 => module[at] = module[numbers.below(module.len())],
            // Removes or duplicates an instruction, or some of its words.
            6 => {
                let end = (at + 1 + numbers.below(8)).min(module.len());
                module.drain(at..end);
            }
            _ => {
                let start = numbers.below(other.len());
                let end = (start + 1 + numbers.below(12)).min(other.len());
                module.splice(at..at, other[start..end].iter().copied());
            }
        }
    }
    module.iter().flat_map(|word| word.to_le_bytes()).collect()
}
