// Parses each playlist named on the command line in hls-parser's strict mode; any complaint, also
// one that it would only print, fails. Prints `FILE: complaint` for each.
import { readFileSync } from "node:fs";
import HLS from "hls-parser";

let complaints = 0;
let file = "";
const complain = (...words) => {
  console.log(`${file}: ${words.join(" ")}`);
  complaints += 1;
};
console.error = complain;
HLS.setOptions({ strictMode: true, silent: false });
for (file of process.argv.slice(2)) {
  try {
    HLS.parse(readFileSync(file, "utf8"));
  } catch (error) {
    complain(error.message);
  }
}
process.exitCode = complaints ? 1 : 0;
