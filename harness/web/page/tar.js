// Uncompressed archives in the format ustar, which every system unpacks.

const BLOCK = 512;

// Returns an archive of text files, `{ name, text }`, in one folder. Names are ASCII and short.
export function archive(folder, files, seconds) {
  const encoder = new TextEncoder();
  const parts = [];
  for (const { name, text } of files) {
    const content = encoder.encode(text);
    const header = new Uint8Array(BLOCK);
    const put = (at, value) => header.set(encoder.encode(value), at);
    const number = (at, width, value) => put(at, `${value.toString(8).padStart(width - 1, "0")}\0`);
    put(0, `${folder}/${name}`);
    number(100, 8, 0o644);
    number(108, 8, 0);
    number(116, 8, 0);
    number(124, 12, content.length);
    number(136, 12, Math.trunc(seconds));
    put(156, "0");
    put(257, "ustar\u000000");
    // The checksum counts its own field as spaces.
    header.fill(0x20, 148, 156);
    put(148, `${header.reduce((sum, byte) => sum + byte, 0).toString(8).padStart(6, "0")}\0 `);
    parts.push(header, content, new Uint8Array((BLOCK - (content.length % BLOCK)) % BLOCK));
  }
  parts.push(new Uint8Array(2 * BLOCK));
  return new Blob(parts, { type: "application/x-tar" });
}
