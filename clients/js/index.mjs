// The module of index.cjs for `import`.

import kproto from './index.cjs'

export const { Mock, RefusedError, start, withMock } = kproto
