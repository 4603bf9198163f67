// Runs franz-go's kfake as a server for bench_data: three brokers and topics of as many partitions
// as the first argument says, until standard input is closed. The further arguments name the topics.
// Prints the address of each broker on one line.
package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	partitions, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.SeedTopics(int32(partitions), os.Args[2:]...))
	if err != nil {
		panic(err)
	}
	defer cluster.Close()
	fmt.Println(strings.Join(cluster.ListenAddrs(), ","))
	io.Copy(io.Discard, os.Stdin)
}
