// An adapter's side of the lines that words.py describes. The program of a client follows this one.
import { createInterface } from 'node:readline'

async function serve (commands) {
  for await (const line of createInterface({ input: process.stdin })) {
    const [name, ...words] = line.split(' ')
    let answer
    try {
      answer = ['ok', ...(await commands[name](...words) ?? [])]
    } catch (error) {
      console.error(error)
      answer = ['error', error.constructor.name, ...error.message.split(/\s+/)]
    }
    process.stdout.write(answer.join(' ') + '\n')
  }
  process.exit(0) // a client that is fenced might not end by itself
}
