//! Text cut into words, lowercase, and into runs of words or characters.

/// Words of a text, one after the other with a blank before, between and behind them, so that a run of words
/// or of a word's characters is one slice. Kept from row to row for its memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Words {
    text: Vec<u8>,
    /// Start and end of each word.
    spans: Vec<(u32, u32)>,
}

/// Letters in lower case, digits, and blanks for all else.
const LOWER: [u8; 128] = {
    let mut table = [b' '; 128];
    let mut byte = 0;
    while byte < 128 {
        if (byte as u8).is_ascii_alphanumeric() {
            table[byte] = (byte as u8).to_ascii_lowercase();
        }
        byte += 1;
    }
    table
};

impl Words {
    /// Cuts a text into runs of letters and digits. Bytes that are not UTF-8 separate words.
    pub(super) fn read(&mut self, text: &[u8]) {
        self.text.clear();
        self.spans.clear();
        self.text.push(b' ');
        if text.is_ascii() {
            self.read_ascii(text);
        } else {
            self.read_unicode(text);
        }
    }

    fn read_ascii(&mut self, text: &[u8]) {
        // One look-up and one store for each byte. The words need no more room than the text and two blanks.
        self.text.resize(text.len() + 2, b' ');
        let (mut start, mut end) = (1, 1);
        for &byte in text {
            let lower = LOWER[usize::from(byte)];
            self.text[end] = lower;
            if lower != b' ' {
                end += 1;
            } else if end > start {
                self.spans.push((start as u32, end as u32));
                end += 1;
                start = end;
            }
        }
        self.text.truncate(end);
        self.end_word(start);
    }

    fn read_unicode(&mut self, text: &[u8]) {
        let mut start = self.text.len();
        for chunk in text.utf8_chunks() {
            for c in chunk.valid().chars() {
                if !c.is_alphanumeric() {
                    start = self.end_word(start);
                    continue;
                }
                for lower in c.to_lowercase() {
                    self.text
                        .extend_from_slice(lower.encode_utf8(&mut [0; 4]).as_bytes());
                }
            }
            if !chunk.invalid().is_empty() {
                start = self.end_word(start);
            }
        }
        self.end_word(start);
    }

    /// Ends the word that began at `start`, if there is one, and says where the next begins.
    fn end_word(&mut self, start: usize) -> usize {
        if self.text.len() > start {
            self.spans.push((start as u32, self.text.len() as u32));
            self.text.push(b' ');
        }
        self.text.len()
    }

    /// Visits every run of 1 to `longest` words, written with single blanks.
    #[inline]
    pub(super) fn word_runs(&self, longest: usize, mut visit: impl FnMut(&[u8])) {
        for (i, &(start, _)) in self.spans.iter().enumerate() {
            for &(_, end) in self.spans[i..].iter().take(longest) {
                visit(&self.text[start as usize..end as usize]);
            }
        }
    }

    /// Visits every run of `shortest` to `longest` characters within each word, the blanks around it taken as
    /// part of it. A word that is shorter than a run counts once, as scikit-learn's `char_wb` has it.
    pub(super) fn character_runs(&self, shortest: usize, longest: usize, mut visit: impl FnMut(&[u8])) {
        for &(start, end) in &self.spans {
            let word = &self.text[start as usize - 1..end as usize + 1];
            // A byte that does not continue a character begins one.
            let begins = |&at: &usize| word.get(at).is_none_or(|byte| byte & 0xc0 != 0x80);
            for length in shortest..=longest {
                let mut ends = (0..=word.len()).filter(begins).skip(length);
                let Some(end) = ends.next() else {
                    visit(word);
                    break;
                };
                visit(&word[..end]);
                let starts = (1..word.len()).filter(begins);
                let more = starts
                    .zip(ends)
                    .inspect(|&(start, end)| visit(&word[start..end]))
                    .count();
                if more == 0 {
                    break;
                }
            }
        }
    }
}
